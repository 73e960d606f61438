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

TEST(PolicyText, OfFsdp1HasItsOwnArguments) {
  FsdpPolicy policy;
  policy.profile = Profile::fsdp1;
  EXPECT_EQ(to_text(policy), "a unit a block, full_shard, backward prefetch pre");
  policy.fsdp1.sharding = ShardingStrategy::hybrid_shard_zero2;
  policy.fsdp1.backward_prefetch = BackwardPrefetch::none;
  policy.fsdp1.forward_prefetch = true;
  EXPECT_EQ(to_text(policy),
            "a unit a block, hybrid_shard_zero2, backward prefetch none, forward prefetch");
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
