// Matrix products of one module call: what the replay computes while collectives are in flight.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/batch.hpp"
#include "core/model/model_spec.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// C[m,n] = A[m,k] * B[k,n], `batch` times.
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;

  friend auto operator<=>(const Gemm&, const Gemm&) = default;
};

/// 2*m*n*k a product.
Flops flops(const Gemm& gemm);

/// Products of one forward call of `module`'s own parameters (children are calls of their own):
/// a Linear weight (out, in) gives tokens x out x in; a Conv1D weight is stored (in, out); an
/// embedding gives none; an attention module adds its scores and values.
std::vector<Gemm> forward_gemms(const Module& module, const Batch& batch);
/// Data gradients (when `input_requires_grad`) and weight gradients (of trainable weights), in
/// launch order.
std::vector<Gemm> backward_gemms(const Module& module, const Batch& batch,
                                 bool input_requires_grad);

}  // namespace fsdp
