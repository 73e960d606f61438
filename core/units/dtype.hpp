// Element types that FSDP moves, with the short names used in run files, records and traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/units/quantity.hpp"

namespace fsdp {

enum class DType { f32, bf16, f16, f8_e4m3, f8_e5m2, u8, i64 };

std::string_view to_text(DType dtype);
std::optional<DType> dtype_from_text(std::string_view text);
/// All of them, for messages.
std::vector<std::string_view> dtype_texts();
/// Bytes of one element.
std::int64_t element_bytes(DType dtype);
/// Bytes of `numel` elements.
inline Bytes bytes_of(std::int64_t numel, DType dtype) { return {numel * element_bytes(dtype)}; }

}  // namespace fsdp
