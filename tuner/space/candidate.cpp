#include "tuner/space/candidate.hpp"

#include <variant>

#include "core/plan/wrap_plan.hpp"
#include "core/schedule/text.hpp"

namespace fsdp {

namespace {

int uniform_blocks(const WrapRule& wrap) {
  if (const auto* every = std::get_if<WrapEvery>(&wrap)) {
    return every->blocks;
  }
  return std::holds_alternative<WrapBlock>(wrap) ? 1 : 0;
}

}  // namespace

Candidate make_candidate(const Workload& workload, const FsdpPolicy& policy) {
  Candidate candidate;
  candidate.policy = policy;
  candidate.label = to_text(policy);
  candidate.unit_blocks = uniform_blocks(policy.wrap);
  const WrapPlan plan = plan_units(workload.model, policy, workload.mesh, workload.batch);
  candidate.schedule = build_schedule(plan);
  candidate.hash = schedule_hash(candidate.schedule);
  candidate.memory = memory_report(candidate.schedule);
  return candidate;
}

std::optional<int> prefetch_depth(const Prefetch& prefetch) {
  const int* depth = std::get_if<int>(&prefetch);
  return depth == nullptr ? std::nullopt : std::optional<int>(*depth);
}

}  // namespace fsdp
