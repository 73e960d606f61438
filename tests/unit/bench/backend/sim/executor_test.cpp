#include "bench/backend/sim/executor.hpp"

#include <gtest/gtest.h>

#include "bench/backend/sim/backend.hpp"
#include "core/schedule/memory.hpp"
#include "core/sim/simulate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp::sim {
namespace {

Schedule small_schedule(int ranks) {
  return test::schedule_of(test::small_llama(3), test::mixed_precision(), ranks);
}

TEST(SimExecutor, RunsTheSimulatedTimelineEveryTime) {
  const Schedule schedule = small_schedule(4);
  const auto executor = make_executor(test::cluster(4));
  const auto step = executor->prepare(schedule);
  const Timeline expected = simulate(schedule, test::cluster(4));
  for (int run = 0; run < 2; ++run) {
    Timeline timeline = timeline_for(schedule);
    step->run(timeline);
    EXPECT_EQ(timeline.step, expected.step);
    for (std::size_t i = 0; i < expected.spans.size(); ++i) {
      EXPECT_EQ(timeline.spans[i].start_ns, expected.spans[i].start_ns);
      EXPECT_EQ(timeline.spans[i].end_ns, expected.spans[i].end_ns);
    }
  }
}

TEST(SimExecutor, HoldsTheBytesOfTheLayout) {
  const Schedule schedule = small_schedule(4);
  const auto step = make_executor(test::cluster(4))->prepare(schedule);
  EXPECT_EQ(step->allocation().pools, layout_arenas(schedule).pool_bytes);
  EXPECT_EQ(step->allocation().peak_live, memory_report(schedule).transient_live);
}

TEST(SimExecutor, SaysThatItDoesNotMeasure) {
  const auto executor = make_executor(test::cluster(4));
  EXPECT_EQ(executor->capabilities().backend, "sim");
  EXPECT_FALSE(executor->capabilities().measures);
  EXPECT_NE(executor->capabilities().compute.find("made up for tests"), std::string::npos);
}

TEST(SimExecutor, RefusesAMeshTheClusterDoesNotKnow) {
  const auto executor = make_executor(test::cluster(4));
  EXPECT_THROW(executor->prepare(small_schedule(8)), Unsupported);
}

TEST(SimExecutor, RefusesATimelineOfAnotherSchedule) {
  const auto step = make_executor(test::cluster(4))->prepare(small_schedule(4));
  Timeline timeline;
  EXPECT_THROW(step->run(timeline), ContractViolation);
}

}  // namespace
}  // namespace fsdp::sim
