#include "core/record/timeline.hpp"

#include <gtest/gtest.h>

#include "core/sim/simulate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

TEST(StepMetrics, AddUpToTheStep) {
  const Schedule schedule = test::schedule_of(test::small_llama(3), test::mixed_precision(), 8);
  const Timeline timeline = simulate(schedule, test::cluster(8));
  const StepMetrics metrics = step_metrics(schedule, timeline);
  EXPECT_EQ(metrics.step, timeline.step);
  EXPECT_GT(metrics.compute.value, 0);
  EXPECT_GT(metrics.exposed_wait.value, 0);  // the first gather at least
  EXPECT_LE(metrics.compute + metrics.exposed_wait, metrics.step);
  EXPECT_LE(metrics.collectives, metrics.step);
}

TEST(StepMetrics, BusBandwidthFollowsTheRingConvention) {
  const Schedule schedule = test::schedule_of(test::small_llama(1), test::mixed_precision(), 8);
  std::vector<Nanoseconds> costs(schedule.ops.size());
  double bytes = 0;
  std::int64_t gathers = 0;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (std::holds_alternative<AllGather>(schedule.ops[i].work)) {
      costs[i] = {1'000'000};
      bytes += static_cast<double>(cost_bytes(schedule, schedule.ops[i]).value);
      ++gathers;
    }
  }
  const StepMetrics metrics = step_metrics(schedule, simulate(schedule, costs, {0}));
  EXPECT_NEAR(metrics.all_gather_busbw, bytes * 7 / 8 / (static_cast<double>(gathers) * 1e-3), 1.0);
  EXPECT_EQ(metrics.reduce_scatter_busbw, 0.0);  // took no time: no figure, not infinity
}

TEST(StepMetrics, ComputeStreamWithoutWaitsHasNothingExposed) {
  const Schedule schedule = test::schedule_of(test::small_llama(2), test::mixed_precision(), 8);
  std::vector<Nanoseconds> costs(schedule.ops.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    costs[i] = {std::holds_alternative<Compute>(schedule.ops[i].work) ? 10 : 0};
  }
  EXPECT_EQ(step_metrics(schedule, simulate(schedule, costs, {0})).exposed_wait.value, 0);
}

}  // namespace
}  // namespace fsdp
