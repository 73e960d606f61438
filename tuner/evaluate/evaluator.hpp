// How long a candidate's step takes, whoever knows: the cost model and the machine answer through
// one interface, so that the tuner can prune with the first and confirm with the second.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bench/executor.hpp"
#include "core/record/measurement.hpp"
#include "core/record/timeline.hpp"
#include "tuner/space/candidate.hpp"

namespace fsdp {

/// A step ran. Without `measurement` it ran on the cost model and is no measurement.
struct Measured {
  double step_ns = 0;  ///< median, or the simulated time
  Timeline timeline;   ///< this rank's; of the sample nearest to the median
  StepMetrics metrics;
  std::optional<Measurement> measurement;
  std::optional<Allocation> allocation;
  /// Paired with the first candidate of the call, where both were measured.
  std::optional<Comparison> against_first;
};
/// The machine does not have the memory, though the user's limit allows it.
struct OutOfMemory {
  Bytes needed;
  Bytes available;
};
/// The backend or the cost model does not do this schedule, and why.
struct Infeasible {
  std::string why;
};
/// It should have run and did not.
struct Failed {
  std::string why;
};
using Outcome = std::variant<Measured, OutOfMemory, Infeasible, Failed>;

/// "measured", "does not fit: needs 9 GiB, 4 GiB available", ...
std::string to_text(const Outcome& outcome);

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// One outcome a candidate, in order. Collective when the evaluator measures: every rank passes
  /// the same candidates and receives the same outcomes (timelines are each rank's own).
  virtual std::vector<Outcome> evaluate(std::span<const Candidate* const> candidates) = 0;
};

}  // namespace fsdp
