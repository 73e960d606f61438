// Runs candidates on the machine, interleaved, so that they can be compared sample by sample.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "bench/measure/sampler.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace fsdp {

struct MeasuringOptions {
  SamplerOptions sampler;  ///< stop.max_time caps the sampling of one plan
  Nanoseconds budget{0};   ///< caps the whole call; 0: no such cap
  double indifference = 0.01;
  /// What one rank may allocate at once. Candidates that do not fit together are measured in
  /// groups, each with the first candidate; one that does not fit at all is OutOfMemory.
  std::optional<Bytes> memory;
  std::function<void(const std::string& what)> on_phase;
  std::function<void(const SamplingProgress&, const Candidate& fastest)> on_batch;
};

class MeasuredEvaluator final : public Evaluator {
 public:
  MeasuredEvaluator(Executor& executor, ControlPlane& control, const MeasuringOptions& options)
      : executor_(executor), control_(control), options_(options) {}
  /// Throws WrongData on all ranks when contents are wrong on any.
  std::vector<Outcome> evaluate(std::span<const Candidate* const> candidates) override;

 private:
  struct Prepared;
  Prepared prepare(const Candidate& candidate);
  Nanoseconds left_of(double budget_share, Nanoseconds start);
  void measure_group(std::span<const Candidate* const> candidates,
                     const std::vector<std::size_t>& group, double budget_share,
                     std::vector<std::optional<Outcome>>& outcomes);

  Executor& executor_;
  ControlPlane& control_;
  MeasuringOptions options_;
};

/// Places of `needs` in groups that fit into `memory` together with the first; the first is in all
/// of them. Those that do not fit even so are in none.
std::vector<std::vector<std::size_t>> memory_groups(std::span<const Bytes> needs,
                                                    const std::optional<Bytes>& memory);

}  // namespace fsdp
