// Which candidates are worth measuring: those that fit, and of those the few that the cost model
// likes best. The default always takes part when it fits, because the winner is compared with it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/units/quantity.hpp"
#include "tuner/search/trial.hpp"

namespace fsdp {

struct PruneLimits {
  std::optional<Bytes> memory_limit;  ///< of MemoryReport::total(), from the run file
  std::optional<Bytes> available;     ///< of MemoryReport::arenas: what this machine has for a rank
  int survivors = 6;
  /// Predictions closer than this fraction are the same to the model.
  double indifference = 0.01;
};

/// Drops from `trials` what does not fit or is predicted slower, with the reason in
/// Trial::dropped. Returns the places of the survivors: the default first (when it fits), then by
/// predicted time. Of plans with the same units and reshard setting that the model cannot tell
/// apart (they differ in prefetch only) the first takes part before any second does: a place is
/// better spent on another wrapping. Throws UsageError, naming the smallest plan, its need and the
/// remedies, when nothing fits the limit, and EnvironmentError when the machine has not the memory
/// for any.
std::vector<std::size_t> prune(std::vector<Trial>& trials, const PruneLimits& limits);

}  // namespace fsdp
