// Turns a prefetch depth or named lists into the lists given to
// set_modules_to_{forward,backward}_prefetch.
#pragma once

#include <vector>

#include "core/plan/wrap_plan.hpp"

namespace fsdp {

/// By unit. A forward depth d >= 1 names the next d units in order of first use; 0 is PyTorch's
/// default and gives empty lists. Throws UsageError for an unknown unit or a negative depth.
std::vector<std::vector<UnitId>> forward_prefetch_lists(const WrapPlan& plan,
                                                        const Prefetch& prefetch);
/// A backward depth d >= 2 names the d units before; 1 is PyTorch's default and gives empty lists.
std::vector<std::vector<UnitId>> backward_prefetch_lists(const WrapPlan& plan,
                                                         const Prefetch& prefetch);

}  // namespace fsdp
