#include "core/model/fsdp_policy.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

TEST(PolicyText, SaysWhatTheTunerVaries) {
  FsdpPolicy policy;
  EXPECT_EQ(to_text(policy), "a unit a block, prefetch 0/1, reshard");
  policy.wrap = WrapEvery{3};
  policy.forward_prefetch = 2;
  policy.backward_prefetch = PrefetchLists{{"root", {"a"}}};
  policy.reshard_after_forward = Reshard::keep();
  EXPECT_EQ(to_text(policy), "a unit every 3 blocks, prefetch 2/lists, keep");
}

TEST(PolicyText, OneBlockAUnitReadsTheSameFromBothRules) {
  EXPECT_EQ(to_text(WrapRule{WrapEvery{1}}), to_text(WrapRule{WrapBlock{}}));
}

TEST(Version, OrdersByMajorThenMinor) {
  EXPECT_LT((Version{2, 8}), (Version{2, 14}));
  EXPECT_LT((Version{2, 14}), (Version{3, 0}));
  EXPECT_EQ(to_text(Version{2, 14}), "2.14");
}

}  // namespace
}  // namespace fsdp
