// Asks the cost model. No clock, no ranks, no memory.
#pragma once

#include <span>
#include <vector>

#include "core/model/cluster_spec.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace fsdp {

class SimulatedEvaluator final : public Evaluator {
 public:
  explicit SimulatedEvaluator(const ClusterSpec& cluster) : cluster_(cluster) {}
  /// A schedule without a cost curve is Infeasible.
  std::vector<Outcome> evaluate(std::span<const Candidate* const> candidates) override;

 private:
  ClusterSpec cluster_;
};

}  // namespace fsdp
