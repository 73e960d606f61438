// What holds for the schedule of any plan: who is gathered and reduced, and in which order ops run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "core/schedule/access.hpp"
#include "core/schedule/happens_before.hpp"
#include "core/schedule/memory.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/verify.hpp"
#include "tests/property/generators.hpp"
#include "tests/property/ordering.hpp"

namespace fsdp {
namespace {

using test::Closure;
using test::Needed;

/// Alone in its shard group, FSDP1 leaves the second name of a tied weight with a view of the
/// first, so that one unit computes with what another holds: left out where a unit must stand by
/// itself.
test::RandomPlan any_plan_of_whole_units() {
  const test::RandomPlan random = test::any_plan();
  RC_PRE(!(has_ties(random.model) && random.policy.profile == Profile::fsdp1 &&
           random.mesh.shard == 1));
  return random;
}

bool is_reduction(const Schedule& schedule, const Op& op) {
  if (std::holds_alternative<ReduceScatter>(op.work)) {
    return true;
  }
  if (schedule.plan.mesh.shard > 1) {
    return false;
  }
  // Alone in its shard group a unit is all-reduced by FSDP1, and copied by FSDP2.
  if (schedule.plan.policy.profile == Profile::fsdp1) {
    return std::holds_alternative<AllReduce>(op.work);
  }
  const auto* cast = std::get_if<Cast>(&op.work);
  return cast != nullptr && schedule[cast->from].kind == BufferKind::reduce_scatter_input;
}

bool syncs(const Batch& batch, int micro) {
  return batch.sync != GradientSync::last || micro + 1 == batch.accumulate;
}

/// By unit: parameters that get a gradient in each micro-batch.
std::vector<std::set<int>> gradients_of(const WrapPlan& plan) {
  std::vector<std::set<int>> out(plan.units.size());
  for (const TraceStep& step : plan.trace) {
    out[step.unit.valid() ? step.unit.index() : 0].insert(step.gradients.begin(),
                                                          step.gradients.end());
  }
  return out;
}

/// How often a unit is reduced at least and at most. PyTorch reduces whatever gradients stand when
/// a run of the unit ends in backward: those that a micro-batch without synchronisation left behind
/// go with the first run to end, the new ones with the last.
std::pair<int, int> reductions_expected(const WrapPlan& plan, UnitId unit, int micro) {
  if (!syncs(plan.batch, micro)) {
    return {0, 0};
  }
  const auto runs = std::count_if(plan.trace.begin(), plan.trace.end(), [&](const TraceStep& s) {
    return s.kind == TraceStep::Kind::enter && s.unit == unit;
  });
  const bool left_behind = plan.policy.profile == Profile::fsdp2 &&
                           plan.batch.sync == GradientSync::last && plan.batch.accumulate > 1;
  return {1, left_behind && runs > 1 ? 2 : 1};
}

RC_GTEST_PROP(Schedule, EveryUnitWithGradientsIsReducedOnceAMicroBatchThatSyncs, ()) {
  const Schedule schedule = test::scheduled(any_plan_of_whole_units());
  const WrapPlan& plan = schedule.plan;
  const auto gradients = gradients_of(plan);
  for (int micro = 0; micro < plan.batch.accumulate; ++micro) {
    std::vector<int> reductions(plan.units.size());
    for (const Op& op : schedule.ops) {
      if (op.micro != micro || !is_reduction(schedule, op)) {
        continue;
      }
      RC_ASSERT(op.phase == Phase::backward);
      ++reductions[op.unit.index()];
      if (plan.policy.profile == Profile::fsdp2) {
        const auto& reduced = schedule[access_of(op).reads.front()].parameters;
        RC_ASSERT(std::set<int>(reduced.begin(), reduced.end()) == gradients[op.unit.index()]);
      }
    }
    for (std::size_t unit = 0; unit < reductions.size(); ++unit) {
      const auto [least, most] =
          gradients[unit].empty()
              ? std::pair{0, 0}
              : reductions_expected(plan, {static_cast<std::int32_t>(unit)}, micro);
      RC_LOG() << "unit " << plan.units[unit].name << " micro-batch " << micro << "\n";
      RC_ASSERT(least <= reductions[unit] && reductions[unit] <= most);
    }
  }
}

RC_GTEST_PROP(Schedule, ReplicasAddUpEveryUnitOnceWhereTheyShould, ()) {
  const Schedule schedule = test::scheduled(any_plan_of_whole_units());
  const WrapPlan& plan = schedule.plan;
  const auto gradients = gradients_of(plan);
  std::vector<int> sums(plan.units.size());
  for (const Op& op : schedule.ops) {
    const Group* group = group_of(op);
    if (group == nullptr || group->kind != GroupKind::replicate) {
      continue;
    }
    RC_ASSERT(std::holds_alternative<AllReduce>(op.work));
    RC_ASSERT(group->ranks == plan.mesh.replicate);
    ++sums[op.unit.index()];
  }
  const int each =
      plan.batch.sync == GradientSync::every ? static_cast<int>(plan.batch.accumulate) : 1;
  // FSDP1 has no replicas but by its strategy, and falls back to plain data parallelism without
  // shards.
  const bool hybrid =
      plan.mesh.replicate > 1 && (plan.policy.profile == Profile::fsdp2 || plan.mesh.shard > 1);
  for (std::size_t unit = 0; unit < sums.size() && hybrid; ++unit) {
    const auto [least, most] =
        gradients[unit].empty() ? std::pair{0, 0}
                                : reductions_expected(plan, {static_cast<std::int32_t>(unit)},
                                                      static_cast<int>(plan.batch.accumulate) - 1);
    RC_ASSERT(least * each <= sums[unit] && sums[unit] <= most * each);
  }
}

RC_GTEST_PROP(Schedule, AGatherBringsAllParametersOfItsUnit, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  for (const Op& op : schedule.ops) {
    const auto* gather = std::get_if<AllGather>(&op.work);
    if (gather == nullptr) {
      continue;
    }
    const FsdpUnit& unit = schedule.plan[op.unit];
    std::int64_t bytes = 0;
    for (const UnitParameter& parameter : unit.parameters) {
      bytes += bytes_of(parameter.numel, parameter.gather_dtype).value;
    }
    RC_ASSERT(bytes_of(gather->recv, gather->dtype).value >= bytes);
    RC_ASSERT(gather->recv == gather->send * gather->group.ranks);
    RC_ASSERT(schedule[gather->to].numel == gather->recv);
  }
}

RC_GTEST_PROP(Schedule, ForwardComputesWithParametersThatStand, ()) {
  const Schedule schedule = test::scheduled(any_plan_of_whole_units());
  std::vector<const TraceStep*> steps;
  for (const TraceStep& step : schedule.plan.trace) {
    if (step.kind == TraceStep::Kind::compute && !step.forward.empty()) {
      steps.push_back(&step);
    }
  }
  std::size_t next = 0;
  for (const Op& op : schedule.ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || op.phase != Phase::forward) {
      continue;
    }
    RC_ASSERT(!steps.empty());
    const TraceStep& step = *steps[next++ % steps.size()];
    RC_ASSERT(step.unit == op.unit);
    RC_LOG() << "unit " << schedule.plan[op.unit].name << "\n";
    RC_ASSERT(compute->parameters.valid() == step.reads_parameters);
  }
  RC_ASSERT(next == steps.size() * static_cast<std::size_t>(schedule.plan.batch.accumulate));
}

std::string told(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& violation : violations) {
    out += fmt::format("#{} {}\n", violation.op.value, violation.what);
  }
  return out;
}

RC_GTEST_PROP(Schedule, VerifyFindsNothing, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  const auto violations = verify(schedule);
  RC_LOG() << to_text(schedule) << told(violations);
  RC_ASSERT(violations.empty());
}

RC_GTEST_PROP(Schedule, WhatTouchesOneBufferIsOrdered, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  const Closure before(schedule);
  for (const Needed& needed : test::needed_orders(schedule)) {
    if (!before(needed.first, needed.second)) {
      RC_LOG() << op_text(schedule, needed.first) << "\n" << op_text(schedule, needed.second);
    }
    RC_ASSERT(before(needed.first, needed.second));
  }
}

RC_GTEST_PROP(Schedule, HappensBeforeIsTheTransitiveClosure, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  const Closure closure(schedule);
  const HappensBefore before(schedule);
  const auto ops = static_cast<std::int32_t>(schedule.ops.size());
  for (OpId a{0}; a.value < ops; ++a.value) {
    for (OpId b{a.value + 1}; b.value < ops; ++b.value) {
      RC_ASSERT(before(a, b) == closure(a, b));
    }
  }
}

struct Edge {
  std::size_t op;
  std::size_t place;
};

/// Some forty of all edges, spread over the schedule.
std::vector<Edge> some_edges(const Schedule& schedule) {
  std::vector<Edge> all;
  for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
    for (std::size_t place = 0; place < schedule.ops[op].after.size(); ++place) {
      all.push_back({op, place});
    }
  }
  const std::size_t stride = all.size() / 40 + 1;
  std::vector<Edge> out;
  for (std::size_t i = static_cast<std::size_t>(test::any_of(0, static_cast<int>(stride) - 1));
       i < all.size(); i += stride) {
    out.push_back(all[i]);
  }
  return out;
}

void log_removal(const Schedule& schedule, const Edge& edge, OpId removed,
                 const std::vector<Violation>& violations) {
  RC_LOG() << to_text(schedule) << "without the edge from\n"
           << op_text(schedule, removed) << "\nto\n"
           << op_text(schedule, {static_cast<std::int32_t>(edge.op)}) << "\n"
           << told(violations);
}

/// Calls `judge` with each of some edges removed from the schedule.
template <class Judge>
void without_each_edge(Schedule& schedule, const Judge& judge) {
  for (const Edge& edge : some_edges(schedule)) {
    std::vector<OpId>& after = schedule.ops[edge.op].after;
    const auto place = static_cast<std::ptrdiff_t>(edge.place);
    const OpId removed = after[edge.place];
    after.erase(after.begin() + place);
    judge(edge, removed);
    after.insert(after.begin() + place, removed);
  }
}

RC_GTEST_PROP(Schedule, VerifyFindsEveryRemovedEdgeThatIsNotImpliedByOthers, ()) {
  Schedule schedule = test::scheduled(test::any_plan());
  without_each_edge(schedule, [&](const Edge& edge, OpId removed) {
    const bool implied = Closure(schedule)(removed, {static_cast<std::int32_t>(edge.op)});
    const auto violations = verify(schedule);
    if (violations.empty() != implied) {
      log_removal(schedule, edge, removed, violations);
    }
    RC_ASSERT(violations.empty() == implied);
  });
}

/// Of a plan without a trace verify cannot tell what PyTorch waits for, and goes by the buffers: an
/// edge is redundant when everything that needs an order has one without it.
RC_GTEST_PROP(Schedule, VerifyFindsEveryRemovedEdgeThatBuffersNeed, ()) {
  Schedule schedule = test::scheduled(test::any_plan());
  schedule.plan.trace.clear();
  RC_ASSERT(verify(schedule).empty());
  const std::vector<Needed> needed = test::needed_orders(schedule);
  int found = 0;
  without_each_edge(schedule, [&](const Edge& edge, OpId removed) {
    const Closure before(schedule);
    const bool redundant = std::all_of(needed.begin(), needed.end(),
                                       [&](const Needed& n) { return before(n.first, n.second); });
    const auto violations = verify(schedule);
    if (violations.empty() != redundant) {
      log_removal(schedule, edge, removed, violations);
    }
    RC_ASSERT(violations.empty() == redundant);
    found += redundant ? 0 : 1;
  });
  RC_CLASSIFY(found > 0, "an edge was needed");
}

/// When buffers come and go; the ends of a buffer that lives for the whole step are invalid.
struct Life {
  OpId allocated;
  OpId freed;
  std::vector<OpId> users;
};

std::vector<Life> lives_of(const Schedule& schedule) {
  std::vector<Life> lives(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const OpId id{static_cast<std::int32_t>(i)};
    if (const auto* allocate = std::get_if<Allocate>(&schedule[id].work)) {
      lives[allocate->buffer.index()].allocated = id;
    } else if (const auto* release = std::get_if<Free>(&schedule[id].work)) {
      lives[release->buffer.index()].freed = id;
    }
    const Access access = access_of(schedule[id]);
    for (const auto* buffers : {&access.reads, &access.writes}) {
      for (const BufferId buffer : *buffers) {
        lives[buffer.index()].users.push_back(id);
      }
    }
  }
  return lives;
}

RC_GTEST_PROP(Memory, ArenasNeverShareBytesOfLiveBuffers, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  const ArenaLayout layout = layout_arenas(schedule);
  const Closure before(schedule);
  const std::vector<Life> lives = lives_of(schedule);
  const auto is_over = [&](const Life& first, const Life& second) {
    return first.freed.valid() && second.allocated.valid() &&
           before(first.freed, second.allocated) &&
           std::all_of(first.users.begin(), first.users.end(),
                       [&](OpId user) { return before(user, second.allocated); });
  };
  for (std::size_t a = 0; a < lives.size(); ++a) {
    const Buffer& buffer = schedule.buffers[a];
    const Bytes end = layout.offsets[a] + buffer.bytes();
    RC_ASSERT(layout.offsets[a].value % 64 == 0);
    RC_ASSERT(end <= layout.pool_bytes[static_cast<std::size_t>(buffer.pool)]);
    for (std::size_t b = 0; b < a; ++b) {
      const Buffer& other = schedule.buffers[b];
      const bool overlap = other.pool == buffer.pool && layout.offsets[b] < end &&
                           layout.offsets[a] < layout.offsets[b] + other.bytes();
      RC_ASSERT(!overlap || is_over(lives[a], lives[b]) || is_over(lives[b], lives[a]));
    }
  }
}

RC_GTEST_PROP(Memory, ArenasHoldThePeak, ()) {
  const Schedule schedule = test::scheduled(test::any_plan());
  const MemoryReport report = memory_report(schedule);
  RC_ASSERT(report.arenas >= report.resident + report.transient_live);
}

}  // namespace
}  // namespace fsdp
