// Properties that hold for every policy the builder accepts, on random models, meshes and costs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "core/schedule/memory.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/verify.hpp"
#include "core/sim/simulate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

WrapRule any_wrap() {
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return WrapNone{};
    case 1:
      return WrapBlock{};
    case 2:
      return WrapTitan{};
    case 3:
      return WrapClass{{"LlamaMLP", "LlamaDecoderLayer"}};
    default:
      return WrapEvery{*rc::gen::inRange(1, 6)};
  }
}

std::optional<DType> any_dtype() {
  return *rc::gen::element<std::optional<DType>>(std::nullopt, DType::bf16, DType::f32);
}

FsdpPolicy any_policy() {
  FsdpPolicy policy;
  policy.version = {2, *rc::gen::inRange(8, 15)};
  policy.wrap = any_wrap();
  policy.reshard_after_forward = *rc::gen::element(Reshard::keep(), Reshard::free());
  policy.root_reshard = *rc::gen::element<std::optional<bool>>(std::nullopt, true, false);
  policy.forward_prefetch = *rc::gen::inRange(0, 5);
  policy.backward_prefetch = *rc::gen::inRange(1, 5);
  policy.param_dtype = any_dtype();
  policy.reduce_dtype = any_dtype();
  policy.reduce_scatter_buffers = policy.version.minor >= 13 ? *rc::gen::inRange(1, 4) : 1;
  return policy;
}

ModelSpec any_model() {
  const auto kv = *rc::gen::element<std::int64_t>(1, 2, 4);
  ModelSpec model = llama("random", {.hidden = 4 * *rc::gen::inRange<std::int64_t>(1, 9),
                                     .ffn = *rc::gen::inRange<std::int64_t>(1, 50),
                                     .layers = *rc::gen::inRange<std::int64_t>(1, 8),
                                     .heads = 4,
                                     .kv_heads = kv,
                                     .vocab = *rc::gen::inRange<std::int64_t>(1, 40),
                                     .tied = *rc::gen::arbitrary<bool>()});
  return model;
}

Schedule any_schedule(int ranks) { return test::schedule_of(any_model(), any_policy(), ranks); }

std::vector<Nanoseconds> any_costs(const Schedule& schedule) {
  std::vector<Nanoseconds> out;
  for (const Op& op : schedule.ops) {
    const bool takes_time = is_collective(op) || cost_bytes(schedule, op).value > 0 ||
                            std::holds_alternative<Compute>(op.work);
    out.push_back({takes_time ? *rc::gen::inRange<std::int64_t>(0, 1000) : 0});
  }
  return out;
}

RC_GTEST_PROP(Schedule, VerifyFindsNothing, ()) {
  const Schedule schedule = any_schedule(*rc::gen::inRange(1, 17));
  const auto violations = verify(schedule);
  for (const Violation& v : violations) {
    RC_LOG() << "#" << v.op.value << " " << v.what << "\n" << to_text(schedule);
  }
  RC_ASSERT(violations.empty());
}

RC_GTEST_PROP(Schedule, ShardsConcatenateToTheOriginal, ()) {
  const int ranks = *rc::gen::inRange(1, 17);
  const Schedule schedule = any_schedule(ranks);
  for (const FsdpUnit& unit : schedule.plan.units) {
    std::int64_t shards = 0;
    for (const UnitParameter& parameter : unit.parameters) {
      RC_ASSERT(parameter.padded_numel == parameter.shard_numel * ranks);
      // Rows of all ranks, cut as torch.chunk cuts, are the rows of the parameter.
      const std::int64_t row = parameter.numel / parameter.shape.front();
      const std::int64_t rows = parameter.shard_numel / row;
      std::int64_t covered = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t left = std::max<std::int64_t>(0, parameter.shape.front() - rank * rows);
        covered += std::min(rows, left) * row;
      }
      RC_ASSERT(covered == parameter.numel);
      shards += parameter.shard_numel;
    }
    RC_ASSERT(shards == unit.shard_numel);
    RC_ASSERT(unit.padded_numel == unit.shard_numel * ranks);
  }
}

RC_GTEST_PROP(Schedule, EveryUnitIsReducedOnceAndGatheredOnceOrTwice, ()) {
  const Schedule schedule = any_schedule(*rc::gen::inRange(2, 17));
  std::vector<int> gathers(schedule.plan.units.size());
  std::vector<int> reductions(schedule.plan.units.size());
  for (const Op& op : schedule.ops) {
    if (std::holds_alternative<AllGather>(op.work)) {
      ++gathers[op.unit.index()];
    } else if (std::holds_alternative<ReduceScatter>(op.work)) {
      ++reductions[op.unit.index()];
    }
  }
  for (std::size_t unit = 0; unit < gathers.size(); ++unit) {
    RC_ASSERT(gathers[unit] >= 1 && gathers[unit] <= 2);
    RC_ASSERT(reductions[unit] == 1);
  }
}

RC_GTEST_PROP(Simulation, StepLiesBetweenTheBusiestStreamAndTheSum, ()) {
  const Schedule schedule = any_schedule(*rc::gen::inRange(1, 17));
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
  const Schedule schedule = any_schedule(*rc::gen::inRange(2, 17));
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
  const int ranks = *rc::gen::inRange(2, 17);
  const Schedule schedule = any_schedule(ranks);
  ClusterSpec cluster = test::cluster(ranks);
  const std::int64_t before = simulate(schedule, cluster).step.value;
  for (CollectiveCurve& curve : cluster.collectives) {
    curve.curve = test::line(10'000, 40'000);
  }
  RC_ASSERT(simulate(schedule, cluster).step.value <= before);
}

RC_GTEST_PROP(Simulation, IsDeterministic, ()) {
  const Schedule schedule = any_schedule(4);
  const Timeline a = simulate(schedule, test::cluster(4));
  const Timeline b = simulate(schedule, test::cluster(4));
  RC_ASSERT(a.step == b.step);
  for (std::size_t i = 0; i < a.spans.size(); ++i) {
    RC_ASSERT(a.spans[i].start_ns == b.spans[i].start_ns && a.spans[i].end_ns == b.spans[i].end_ns);
  }
}

RC_GTEST_PROP(Memory, ArenasHoldThePeak, ()) {
  const Schedule schedule = any_schedule(*rc::gen::inRange(1, 17));
  const MemoryReport report = memory_report(schedule);
  RC_ASSERT(report.arenas >= report.resident + report.transient_live);
}

}  // namespace
}  // namespace fsdp
