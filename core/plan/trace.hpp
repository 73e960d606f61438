// What one forward does to the units: the module calls of the model, seen by the hooks of
// fully_shard.
#pragma once

#include <vector>

#include "core/plan/layout.hpp"

namespace fsdp {

/// Enter, compute and exit steps in forward order. Consecutive products of one unit are one step. A
/// unit over several modules is entered before the first of them runs and left after the last has
/// run; one that has modules left over when the root is left is left right behind it, from PyTorch
/// 2.13 on, and before not at all. Throws
/// UsageError for calls that do not follow the module tree.
std::vector<TraceStep> trace_forward(const ModelSpec& model, const UnitLayout& layout,
                                     const Batch& batch, const FsdpPolicy& policy);

}  // namespace fsdp
