#include "core/schedule/fsdp1.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

FsdpPolicy fsdp1(BackwardPrefetch prefetch = BackwardPrefetch::pre) {
  FsdpPolicy policy = mixed_precision();
  policy.profile = Profile::fsdp1;
  policy.fsdp1.backward_prefetch = prefetch;
  return policy;
}

/// "AG root, AG 0 | RS 0, RS root": forward and backward, blocks by their number.
std::string collectives(const Schedule& schedule) {
  std::string out;
  bool backward = false;
  for (const Op& op : schedule.ops) {
    if (!is_collective(op)) {
      continue;
    }
    const bool turns = op.phase == Phase::backward && !backward;
    backward = backward || turns;
    out += turns ? " | " : out.empty() ? "" : ", ";
    const std::string& name = schedule.plan[op.unit].name;
    out += fmt::format("{} {}", std::holds_alternative<AllGather>(op.work) ? "AG" : "RS",
                       name.substr(name.rfind('.') + 1));
  }
  return out;
}

template <class Work>
std::ptrdiff_t count(const Schedule& schedule) {
  return std::count_if(schedule.ops.begin(), schedule.ops.end(),
                       [](const Op& op) { return std::holds_alternative<Work>(op.work); });
}

const std::string forward = "AG root, AG 0, AG 1, AG 2 | ";

TEST(Fsdp1, PrefetchBeforeAndBehindBackwardIssueInTheSameOrder) {
  for (const BackwardPrefetch prefetch : {BackwardPrefetch::pre, BackwardPrefetch::post}) {
    EXPECT_EQ(collectives(schedule_of(small_llama(3), fsdp1(prefetch), 8)),
              forward + "AG 2, AG 1, RS 2, AG 0, RS 1, RS 0, RS root");
  }
}

TEST(Fsdp1, WithoutPrefetchAGatherFollowsTheReductionBeforeIt) {
  EXPECT_EQ(collectives(schedule_of(small_llama(3), fsdp1(BackwardPrefetch::none), 8)),
            forward + "AG 2, RS 2, AG 1, RS 1, AG 0, RS 0, RS root");
}

TEST(Fsdp1, ShardGradOpGathersOnce) {
  FsdpPolicy policy = fsdp1();
  policy.fsdp1.sharding = ShardingStrategy::shard_grad_op;
  EXPECT_EQ(collectives(schedule_of(small_llama(3), policy, 8)),
            forward + "RS 2, RS 1, RS 0, RS root");
}

TEST(Fsdp1, ForwardPrefetchGathersOneUnitAhead) {
  FsdpPolicy policy = fsdp1();
  policy.fsdp1.forward_prefetch = true;
  const Schedule schedule = schedule_of(small_llama(4), policy, 8);
  // As recorded (fsdp1-fwd): a unit whose views were made early is reduced behind the next gather.
  EXPECT_EQ(collectives(schedule),
            "AG root, AG 0, AG 1, AG 2, AG 3 | "
            "AG 3, AG 2, AG 1, RS 3, AG 0, RS 2, RS 1, RS 0, RS root");
  // Root, block 0, and block 1 when block 0 is about to multiply.
  const auto computes = [](const Op& op) { return std::holds_alternative<Compute>(op.work); };
  const auto first = std::find_if(schedule.ops.begin(), schedule.ops.end(), computes);
  EXPECT_EQ(std::count_if(schedule.ops.begin(), first, is_collective), 3);
}

TEST(Fsdp1, CountsOfBlocksAndTheRoot) {
  for (const int blocks : {1, 4, 9}) {
    const Schedule schedule = schedule_of(small_llama(blocks), fsdp1(), 8);
    EXPECT_EQ(count<AllGather>(schedule), 2 * blocks + 1);
    EXPECT_EQ(count<ReduceScatter>(schedule), blocks + 1);
  }
}

TEST(Fsdp1, OnlyTheLimiterMakesTheHostWait) {
  FsdpPolicy policy = fsdp1();
  EXPECT_GT(count<HostWait>(schedule_of(small_llama(4), policy, 8)), 0);
  policy.fsdp1.limit_all_gathers = false;
  EXPECT_EQ(count<HostWait>(schedule_of(small_llama(4), policy, 8)), 0);
}

}  // namespace
}  // namespace fsdp
