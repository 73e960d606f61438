// Owned arrays and random numbers for the kernel tests.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/array.hpp"

namespace fsdp::kernels::test {

/// Memory of a typed array. Starts as NaN bytes, so that what a kernel forgets to write shows.
class Owned {
 public:
  Owned(std::int64_t numel, DType dtype)
      : numel_(numel),
        dtype_(dtype),
        bytes_(static_cast<std::size_t>(bytes_of(numel, dtype).value) + 1, std::byte{0xFF}) {}
  Array view() { return {bytes_.data(), numel_, dtype_}; }
  void set(std::int64_t index, float value) {
    if (dtype_ == DType::bf16) {
      view().bf16s()[index] = to_bf16(value);
    } else {
      view().floats()[index] = value;
    }
  }
  float at(std::int64_t index) { return element(view(), index); }

 private:
  std::int64_t numel_;
  DType dtype_;
  std::vector<std::byte> bytes_;
};

/// Random floats of many magnitudes, from the given seed.
inline Owned random_array(std::int64_t numel, DType dtype, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  Owned array(numel, dtype);
  for (std::int64_t i = 0; i < numel; ++i) {
    array.set(i, std::ldexp(normal(bits), exponent(bits)));
  }
  return array;
}

inline bool same_bytes(const ConstArray& a, const ConstArray& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

}  // namespace fsdp::kernels::test
