// The two size rules: FSDP1's recursive one and accelerate's plain one for FSDP2.
#pragma once

#include "core/plan/wrap_rules.hpp"

namespace fsdp {

/// PyTorch's size_based_auto_wrap_policy under _recursive_wrap: a module is entered when all of its
/// elements reach the threshold, and wrapped when those that no wrapped child took do. A parameter
/// is counted once below a module, but once in each of two siblings that share it.
ModuleGroups size_groups(const ModelSpec& model, const WrapSize& rule);

/// Every module but the root with more elements than the threshold, wrapped children included.
ModuleGroups total_size_groups(const ModelSpec& model, const WrapTotalSize& rule);

}  // namespace fsdp
