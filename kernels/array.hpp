// Views of typed memory that the kernels work on. A view owns nothing; whoever holds the arena
// does.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/units/dtype.hpp"

namespace fsdp::kernels {

/// The upper half of a float. A type of its own, so that it is never mistaken for an integer.
struct Bf16 {
  std::uint16_t bits = 0;
};

inline float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

/// Rounds to nearest, ties to even; a NaN stays a NaN.
inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t quiet = bits | 0x00400000U;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16U)};
}

/// `numel` elements of f32 or bf16 that may be written.
struct Array {
  std::byte* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::f32;

  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(numel, dtype).value); }
  Array slice(std::int64_t first, std::int64_t count) const {
    return {data + bytes_of(first, dtype).value, count, dtype};
  }
  float* floats() const { return reinterpret_cast<float*>(data); }
  Bf16* bf16s() const { return reinterpret_cast<Bf16*>(data); }
};

/// `numel` elements of f32 or bf16 that are only read.
struct ConstArray {
  const std::byte* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::f32;

  ConstArray() = default;
  ConstArray(const std::byte* first, std::int64_t count, DType type)
      : data(first), numel(count), dtype(type) {}
  ConstArray(const Array& array)  // NOLINT(google-explicit-constructor): a view only narrows
      : data(array.data), numel(array.numel), dtype(array.dtype) {}

  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(numel, dtype).value); }
  ConstArray slice(std::int64_t first, std::int64_t count) const {
    return {data + bytes_of(first, dtype).value, count, dtype};
  }
  const float* floats() const { return reinterpret_cast<const float*>(data); }
  const Bf16* bf16s() const { return reinterpret_cast<const Bf16*>(data); }
};

/// One element as a number.
inline float element(const ConstArray& array, std::int64_t index) {
  return array.dtype == DType::bf16 ? to_float(array.bf16s()[index]) : array.floats()[index];
}

}  // namespace fsdp::kernels
