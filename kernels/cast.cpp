#include "kernels/cast.hpp"

#include <cstring>

#include "core/units/error.hpp"
#include "kernels/clones.hpp"

namespace fsdp::kernels {
namespace {

FSDP_CLONES void narrow(const float* __restrict from, Bf16* __restrict to, std::int64_t numel) {
  for (std::int64_t i = 0; i < numel; ++i) {
    to[i] = to_bf16(from[i]);
  }
}

FSDP_CLONES void widen(const Bf16* __restrict from, float* __restrict to, std::int64_t numel) {
  for (std::int64_t i = 0; i < numel; ++i) {
    to[i] = to_float(from[i]);
  }
}

}  // namespace

void cast(const ConstArray& from, const Array& to) {
  expects(from.numel == to.numel, "cast: sizes are equal");
  if (from.numel == 0) {
    return;
  }
  if (from.dtype == to.dtype) {
    std::memcpy(to.data, from.data, to.bytes());
  } else if (from.dtype == DType::f32 && to.dtype == DType::bf16) {
    narrow(from.floats(), to.bf16s(), to.numel);
  } else if (from.dtype == DType::bf16 && to.dtype == DType::f32) {
    widen(from.bf16s(), to.floats(), to.numel);
  } else {
    expects(false, "cast: the dtypes are f32 or bf16");
  }
}

}  // namespace fsdp::kernels
