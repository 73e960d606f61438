#include "core/sim/assumed_cluster.hpp"

#include <gtest/gtest.h>

#include "core/sim/simulate.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

TEST(AssumedCluster, AGatherMovesItsOtherRanksShareAtTheBusRate) {
  const Schedule schedule = test::schedule_of(test::small_llama(1), test::mixed_precision(), 4);
  const ClusterSpec cluster = assumed_cluster(schedule);
  const std::vector<Nanoseconds> costs = op_costs(schedule, cluster);
  int gathers = 0;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (std::holds_alternative<AllGather>(schedule.ops[i].work)) {
      const auto bytes = static_cast<double>(cost_bytes(schedule, schedule.ops[i]).value);
      EXPECT_NEAR(static_cast<double>(costs[i].value), 20e3 + bytes * 3 / 4 / 50e9 * 1e9, 1);
      ++gathers;
    }
  }
  EXPECT_EQ(gathers, 3);
  EXPECT_NE(cluster.origin.find("assumed"), std::string::npos);
}

TEST(AssumedCluster, KnowsEveryGroupOfAHybridMesh) {
  const ModelSpec model = test::small_llama(1);
  FsdpPolicy policy = test::mixed_precision();
  policy.reshard_after_forward = {2};
  const Schedule schedule =
      build_schedule(plan_units(model, policy, {.replicate = 3, .shard = 4}, {}));
  EXPECT_NO_THROW(op_costs(schedule, assumed_cluster(schedule)));
}

}  // namespace
}  // namespace fsdp
