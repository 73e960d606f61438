// fsdp-bench, the planner: a model and a policy to units, operations and what is said about them.
// Nothing is allocated or moved, so that any number of ranks is planned on any machine, at a cost
// that must not grow with it.
#include <benchmark/benchmark.h>

#include "core/advice/alignment.hpp"
#include "core/advice/finding.hpp"
#include "core/advice/memory_budget.hpp"
#include "core/model/families.hpp"
#include "core/schedule/schedule.hpp"
#include "core/sim/assumed_cluster.hpp"
#include "core/sim/simulate.hpp"

namespace fsdp {
namespace {

constexpr Batch batch{.sequence = 8192, .micro_batch = 1};

/// Llama-3.1 405B, as configs/models/llama3-405b.yaml has it.
const ModelSpec& largest_model() {
  static const ModelSpec model = llama("llama3-405b", {.hidden = 16384,
                                                       .ffn = 53248,
                                                       .layers = 126,
                                                       .heads = 128,
                                                       .kv_heads = 8,
                                                       .vocab = 128256,
                                                       .tied = false});
  return model;
}

FsdpPolicy policy_of(Profile profile) {
  FsdpPolicy policy;
  policy.profile = profile;
  policy.wrap = WrapTitan{};
  if (profile == Profile::fsdp1) {
    policy.wrap = WrapBlock{};
  }
  policy.param_dtype = DType::bf16;
  policy.reduce_dtype = DType::f32;
  return policy;
}

WrapPlan plan_for(Profile profile, std::int64_t ranks) {
  return plan_units(largest_model(), policy_of(profile),
                    {.replicate = 1, .shard = static_cast<int>(ranks)}, batch);
}

/// Units and the whole schedule of one step: what a search does for every policy it looks at.
void plan_405b(benchmark::State& state, Profile profile) {
  for (auto _ : state) {
    const Schedule schedule = build_schedule(plan_for(profile, state.range(0)));
    benchmark::DoNotOptimize(schedule.ops.data());
  }
}

/// What `plan` says beyond units and operations.
void report_405b(benchmark::State& state) {
  const Schedule schedule = build_schedule(plan_for(Profile::fsdp2, state.range(0)));
  const std::vector<Nanoseconds> times = op_costs(schedule, assumed_cluster(schedule));
  for (auto _ : state) {
    benchmark::DoNotOptimize(memory_budget(largest_model(), schedule, std::nullopt));
    benchmark::DoNotOptimize(alignment_report(schedule));
    benchmark::DoNotOptimize(findings({largest_model(), schedule, times}));
  }
}

void ranks(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("ranks")->Arg(16)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan_405b, fsdp2, Profile::fsdp2)->Apply(ranks);
BENCHMARK_CAPTURE(plan_405b, fsdp1, Profile::fsdp1)->Apply(ranks);
BENCHMARK(report_405b)->Apply(ranks);

}  // namespace
}  // namespace fsdp
