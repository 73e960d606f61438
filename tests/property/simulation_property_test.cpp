// What holds for the simulated times of any schedule.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "core/sim/assumed_cluster.hpp"
#include "core/sim/simulate.hpp"
#include "tests/property/generators.hpp"

namespace fsdp {
namespace {

Schedule any_schedule() { return test::scheduled(test::any_plan()); }

std::vector<Nanoseconds> any_costs(const Schedule& schedule) {
  std::vector<Nanoseconds> out;
  for (const Op& op : schedule.ops) {
    const bool takes_time = is_collective(op) || cost_bytes(schedule, op).value > 0 ||
                            std::holds_alternative<Compute>(op.work);
    out.push_back({takes_time ? *rc::gen::inRange<std::int64_t>(0, 1000) : 0});
  }
  return out;
}

RC_GTEST_PROP(Simulation, StepLiesBetweenTheBusiestStreamAndTheSum, ()) {
  const Schedule schedule = any_schedule();
  const auto costs = any_costs(schedule);
  std::array<std::int64_t, stream_count> busy{};
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    busy[static_cast<std::size_t>(schedule.ops[i].stream)] += costs[i].value;
    sum += costs[i].value;
  }
  const std::int64_t step = simulate(schedule, costs, {0}).step.value;
  RC_ASSERT(step >= *std::max_element(busy.begin(), busy.end()));
  RC_ASSERT(step <= sum);
}

RC_GTEST_PROP(Simulation, ACheaperOpNeverLengthensTheStep, ()) {
  const Schedule schedule = any_schedule();
  auto costs = any_costs(schedule);
  const std::int64_t before = simulate(schedule, costs, {0}).step.value;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (is_collective(schedule.ops[i])) {
      costs[i].value = costs[i].value * *rc::gen::inRange<std::int64_t>(0, 101) / 100;
    }
  }
  RC_ASSERT(simulate(schedule, costs, {0}).step.value <= before);
}

RC_GTEST_PROP(Simulation, AFasterLinkNeverLengthensTheStep, ()) {
  const Schedule schedule = any_schedule();
  ClusterSpec cluster = assumed_cluster(schedule);
  const std::int64_t before = simulate(schedule, cluster).step.value;
  for (CollectiveCurve& collective : cluster.collectives) {
    for (auto& [bytes, time] : collective.curve.points) {
      time = {time.value / 2};
    }
  }
  RC_ASSERT(simulate(schedule, cluster).step.value <= before);
}

RC_GTEST_PROP(Simulation, IsDeterministic, ()) {
  const Schedule schedule = any_schedule();
  const ClusterSpec cluster = assumed_cluster(schedule);
  const Timeline a = simulate(schedule, cluster);
  const Timeline b = simulate(schedule, cluster);
  RC_ASSERT(a.step == b.step);
  for (std::size_t i = 0; i < a.spans.size(); ++i) {
    RC_ASSERT(a.spans[i].start_ns == b.spans[i].start_ns && a.spans[i].end_ns == b.spans[i].end_ns);
  }
}

}  // namespace
}  // namespace fsdp
