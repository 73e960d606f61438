// How large a model read from a file may be. Far above any real model and far below what would
// overflow a sum of bytes or take long to build.
#pragma once

#include <cstdint>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// Elements of one parameter.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 48;
/// Elements of all parameters, ties counted as often as they occur.
inline constexpr std::int64_t most_total_elements = std::int64_t{1} << 50;
inline constexpr std::int64_t most_modules = std::int64_t{1} << 20;
/// Deeper trees than any real model has would exhaust the stack of recursive functions.
inline constexpr int most_depth = 128;

/// The product of the extents, all of which must be positive; most_elements + 1 where it is more
/// than most_elements.
std::int64_t bounded_numel(const std::vector<std::int64_t>& shape);

/// Throws UsageError "DOCUMENT: ..." for a model beyond these limits.
void check_limits(const ModelSpec& model, const char* document);

}  // namespace fsdp
