#include "kernels/reduce.hpp"

#include "core/units/error.hpp"
#include "kernels/clones.hpp"

namespace fsdp::kernels {
namespace {

FSDP_CLONES void sum_f32(const float* __restrict part, float* __restrict total,
                         std::int64_t numel) {
  for (std::int64_t i = 0; i < numel; ++i) {
    total[i] += part[i];
  }
}

FSDP_CLONES void sum_bf16(const Bf16* __restrict part, Bf16* __restrict total, std::int64_t numel) {
  for (std::int64_t i = 0; i < numel; ++i) {
    total[i] = to_bf16(to_float(total[i]) + to_float(part[i]));
  }
}

FSDP_CLONES void scale_f32(float* values, std::int64_t numel, float factor) {
  for (std::int64_t i = 0; i < numel; ++i) {
    values[i] *= factor;
  }
}

FSDP_CLONES void scale_bf16(Bf16* values, std::int64_t numel, float factor) {
  for (std::int64_t i = 0; i < numel; ++i) {
    values[i] = to_bf16(to_float(values[i]) * factor);
  }
}

}  // namespace

void sum(const ConstArray& part, const Array& total) {
  expects(part.dtype == total.dtype && part.numel == total.numel, "sum: one dtype and size");
  if (total.dtype == DType::bf16) {
    sum_bf16(part.bf16s(), total.bf16s(), total.numel);
  } else {
    expects(total.dtype == DType::f32, "sum: the dtype is f32 or bf16");
    sum_f32(part.floats(), total.floats(), total.numel);
  }
}

void scale(const Array& values, float factor) {
  if (values.dtype == DType::bf16) {
    scale_bf16(values.bf16s(), values.numel, factor);
  } else {
    expects(values.dtype == DType::f32, "scale: the dtype is f32 or bf16");
    scale_f32(values.floats(), values.numel, factor);
  }
}

}  // namespace fsdp::kernels
