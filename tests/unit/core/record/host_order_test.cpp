#include "core/record/host_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Whole lists are compared with traces in tests/golden.

TEST(HostOrder, ForwardOfOneUnitLineByLine) {
  FsdpPolicy policy = mixed_precision();
  policy.wrap = WrapNone{};
  auto lines = host_order(schedule_of(small_llama(1), policy, 4));
  lines.resize(5);
  EXPECT_THAT(lines, ElementsAre("f0 all_gather_copy_in: copy_in root",
                                 "f0 all_gather: wait all_gather_copy_in/copy_in root",
                                 "f0 all_gather: all_gather root",
                                 "f0 compute: wait all_gather/all_gather root",
                                 "f0 compute: copy_out root"));
}

TEST(HostOrder, TheLimiterBlocksTheHostUntilAFreeOfTheStepBefore) {
  FsdpPolicy policy = mixed_precision();
  policy.profile = Profile::fsdp1;
  const auto lines = host_order(schedule_of(small_llama(3), policy, 4));
  EXPECT_THAT(lines, Contains(HasSubstr(" host: synchronize free_unsharded model.layers.")));
  policy.fsdp1.limit_all_gathers = false;
  EXPECT_THAT(host_order(schedule_of(small_llama(3), policy, 4)),
              Each(Not(HasSubstr("synchronize"))));
}

TEST(HostOrder, StreamsHaveTheProfilesNames) {
  FsdpPolicy policy = mixed_precision();
  policy.profile = Profile::fsdp1;
  const auto lines = host_order(schedule_of(small_llama(1), policy, 4));
  EXPECT_THAT(lines, Contains("f0 unshard: all_gather root"));
  EXPECT_THAT(lines, Contains("b0 post_backward: reduce_scatter root"));
}

}  // namespace
}  // namespace fsdp
