// What the tuner knows about one candidate: the prediction, and the measurement where it came to
// one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tuner/evaluate/evaluator.hpp"
#include "tuner/space/candidate.hpp"

namespace fsdp {

struct Trial {
  Candidate candidate;
  std::optional<Outcome> predicted;
  std::optional<Outcome> measured;
  std::string dropped;  ///< why it was not measured; empty when it went on
};

/// The simulated step, or nothing when the cost model does not know the schedule.
const Measured* predicted_step(const Trial& trial);
/// The measured step, or nothing when it was not measured or did not run.
const Measured* measured_step(const Trial& trial);
/// "measured", "pruned by simulation", "does not fit: ...", "failed: ...": the record's outcome.
std::string outcome_text(const Trial& trial);

}  // namespace fsdp
