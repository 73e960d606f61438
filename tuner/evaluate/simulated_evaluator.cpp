#include "tuner/evaluate/simulated_evaluator.hpp"

#include <utility>

#include "core/sim/simulate.hpp"
#include "core/units/error.hpp"

namespace fsdp {

namespace {

Outcome simulated(const Candidate& candidate, const ClusterSpec& cluster) {
  try {
    Measured result;
    result.timeline = simulate(candidate.schedule, cluster);
    result.step_ns = static_cast<double>(result.timeline.step.value);
    result.metrics = step_metrics(candidate.schedule, result.timeline);
    return result;
  } catch (const UsageError& error) {
    return Infeasible{error.what()};
  }
}

}  // namespace

std::vector<Outcome> SimulatedEvaluator::evaluate(std::span<const Candidate* const> candidates) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(candidates.size());
  for (const Candidate* candidate : candidates) {
    outcomes.push_back(simulated(*candidate, cluster_));
  }
  return outcomes;
}

}  // namespace fsdp
