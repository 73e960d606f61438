// Who wins, and how sure that is. A candidate that is not shown to be faster than the default does
// not win: changing a configuration for noise costs people more than it brings.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/record/measurement.hpp"
#include "core/units/error.hpp"
#include "tuner/search/trial.hpp"

namespace fsdp {

struct Decision {
  enum class Kind {
    faster,           ///< `winner` is faster than the default
    default_fastest,  ///< nothing was faster than the default
    not_shown,        ///< `fastest` looked faster, but the difference is not shown
    too_few_samples,  ///< there is no interval to judge by
    default_missing,  ///< the default did not run; `winner` is the fastest of the rest
    nothing_ran,      ///< no candidate gave a time
  };
  Kind kind = Kind::nothing_ran;
  bool simulated = false;              ///< decided by predictions: not a measurement
  std::optional<std::size_t> fastest;  ///< lowest median, or lowest prediction
  std::optional<std::size_t> winner;
  std::optional<std::size_t> default_place;  ///< where the default stands among the trials
  int compared = 0;                          ///< candidates that have a time
  std::string sentence;                      ///< what a person reads first
};

/// Judges by measurements where the trials hold any, else by predictions (then `indifference`
/// alone decides what counts as faster, because a simulated time has no noise).
Decision decide(const std::vector<Trial>& trials, double indifference);

/// 0 for a verdict, no_verdict when there were too few samples, environment when nothing ran.
ExitCode exit_code(const Decision& decision);

}  // namespace fsdp
