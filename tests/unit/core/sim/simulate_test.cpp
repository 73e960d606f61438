#include "core/sim/simulate.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/schedule/verify.hpp"
#include "core/sim/assumed_cluster.hpp"
#include "core/units/error.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"
#include "tests/support/small_plans.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

/// Gradients of parameters that are added or looked up are delivered by an op without products.
bool multiplies(const Op& op) {
  const auto* compute = std::get_if<Compute>(&op.work);
  return compute != nullptr && !compute->gemms.empty();
}

/// Costs by operation name, so that a step can be added up by hand.
std::vector<Nanoseconds> costs(const Schedule& schedule, std::int64_t gather, std::int64_t scatter,
                               std::int64_t compute) {
  std::vector<Nanoseconds> out;
  for (const Op& op : schedule.ops) {
    const auto name = name_of(op);
    out.push_back({name == "all_gather"       ? gather
                   : name == "reduce_scatter" ? scatter
                   : multiplies(op)           ? compute
                                              : 0});
  }
  return out;
}

TEST(Simulate, WithFreeCollectivesAStepIsItsCompute) {
  const Schedule schedule = schedule_of(small_llama(4), mixed_precision(), 8);
  std::int64_t products = 0;
  for (const Op& op : schedule.ops) {
    products += multiplies(op) ? 1 : 0;
  }
  EXPECT_EQ(simulate(schedule, costs(schedule, 0, 0, 10), {0}).step.value, 10 * products);
}

TEST(Simulate, WithoutComputeCollectivesRunOneAtATime) {
  const Schedule schedule = schedule_of(small_llama(4), mixed_precision(), 8);
  // root, 4 blocks, 4 blocks again; 4 blocks and root reduced; all on one communicator.
  EXPECT_EQ(simulate(schedule, costs(schedule, 7, 11, 0), {0}).step.value, 9 * 7 + 5 * 11);
}

TEST(Simulate, SteadyStateHidesTheCheaperSide) {
  // Backward: max(compute, gather + scatter) a unit (the oracle for equal units with one
  // reduce-scatter input).
  const auto step = [](int layers, std::int64_t gather, std::int64_t scatter,
                       std::int64_t compute) {
    const Schedule schedule = schedule_of(small_llama(layers), mixed_precision(), 8);
    return simulate(schedule, costs(schedule, gather, scatter, compute), {0}).step.value;
  };
  // One more layer costs one forward and one backward period.
  EXPECT_EQ(step(11, 100, 100, 1000) - step(10, 100, 100, 1000), 1000 + 1000);
  EXPECT_EQ(step(11, 300, 400, 100) - step(10, 300, 400, 100), 300 + 700);
}

TEST(Simulate, SpansRespectStreamsEdgesAndTheCommunicator) {
  const Schedule schedule = schedule_of(small_llama(3), mixed_precision(), 8);
  const Timeline timeline = simulate(schedule, test::cluster(8));
  ASSERT_EQ(timeline.spans.size(), schedule.ops.size());
  std::array<std::int64_t, stream_count> stream_end{};
  std::int64_t communicator_end = 0;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const OpSpan& span = timeline.spans[i];
    auto& end = stream_end[static_cast<std::size_t>(op.stream)];
    EXPECT_GE(span.start_ns, end);
    end = span.end_ns;
    for (const OpId edge : op.after) {
      EXPECT_GE(span.start_ns, timeline.spans[edge.index()].end_ns);
    }
    if (is_collective(op)) {
      EXPECT_GE(span.start_ns, communicator_end);
      communicator_end = span.end_ns;
    }
  }
  EXPECT_EQ(timeline.step.value, timeline.spans.back().end_ns);
}

TEST(Simulate, HostIssueCostDelaysEveryOp) {
  const Schedule schedule = schedule_of(small_llama(2), mixed_precision(), 8);
  const auto count = static_cast<std::int64_t>(schedule.ops.size());
  EXPECT_EQ(simulate(schedule, costs(schedule, 0, 0, 0), {5}).step.value, 5 * count);
}

TEST(OpCosts, NameTheMissingCurve) {
  const Schedule schedule = schedule_of(small_llama(1), mixed_precision(), 4);
  try {
    op_costs(schedule, test::cluster(8));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("no cost curve for all_gather over 4 ranks"),
              std::string::npos)
        << error.what();
  }
}

TEST(OpCosts, PreferMeasuredProductsToTheRate) {
  const Schedule schedule = schedule_of(small_llama(1), mixed_precision(), 8);
  ClusterSpec cluster = test::cluster(8);
  const auto compute_cost = [&] {
    const auto all = op_costs(schedule, cluster);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      total += std::holds_alternative<Compute>(schedule.ops[i].work) ? all[i].value : 0;
    }
    return total;
  };
  const std::int64_t by_rate = compute_cost();
  std::int64_t products = 0;
  for (const Op& op : schedule.ops) {
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      for (const Gemm& gemm : compute->gemms) {
        cluster.gemms.push_back({.gemm = gemm, .dtype = compute->dtype, .time = {1'000'000}});
        ++products;
      }
    }
  }
  EXPECT_EQ(compute_cost(), products * 1'000'000);
  EXPECT_NE(by_rate, products * 1'000'000);
}

/// What `plan` and `tune` can ask for on any machine.
TEST(Simulate, RunsEveryKindOfWork) {
  std::set<std::size_t> kinds;
  std::vector<test::SmallPlan> plans = test::small_plans();
  const std::vector<test::SmallPlan> wide = test::wide_plans();
  plans.insert(plans.end(), wide.begin(), wide.end());
  for (const test::SmallPlan& plan : plans) {
    SCOPED_TRACE(plan.name);
    const Schedule schedule = test::schedule_of(plan, 4);
    EXPECT_TRUE(verify(schedule).empty());
    const Timeline timeline = simulate(schedule, assumed_cluster(schedule));
    EXPECT_GT(timeline.step.value, 0);
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      kinds.insert(schedule.ops[i].work.index());
      for (const OpId edge : schedule.ops[i].after) {
        EXPECT_GE(timeline.spans[i].start_ns, timeline.spans[edge.index()].end_ns);
      }
    }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Work>) << "a work that no plan has";
}

}  // namespace
}  // namespace fsdp
