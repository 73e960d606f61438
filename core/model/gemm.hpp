// Matrix products of one module call: what the replay computes while collectives are in flight.
#pragma once

#include <cstdint>
#include <string>
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
/// embedding gives none; an attention module adds its scores and values. Of stacked experts each
/// sees its share of the tokens, or all of them where the tree does not say how many a token
/// visits.
/// Recomputing a call for its backward launches the same list again.
std::vector<Gemm> forward_gemms(const Module& module, const Batch& batch);
/// Scores and values of an attention module, of all heads and sequences; none for the rest. What
/// selective checkpointing computes again.
std::vector<Gemm> attention_gemms(const Module& module, const Batch& batch);
/// True for the path of the projection that follows scores and values, by its usual names.
bool is_output_projection(const std::string& module_path);
/// Data gradients (when `input_requires_grad`) and weight gradients (of trainable weights), in
/// launch order.
std::vector<Gemm> backward_gemms(const Module& module, const Batch& batch,
                                 bool input_requires_grad);

/// Floating point operations of one micro-batch on one rank.
struct ModelFlops {
  Flops forward;
  Flops backward;   ///< about twice the forward; nothing for what has no gradient
  Flops recompute;  ///< more, where every block is checkpointed: its forward again
};

/// Sums over the calls of `model`. Per Linear 2*tokens*in*out forward and twice that backward, per
/// attention 4*micro_batch*sequence^2*heads*head_dim forward (no discount for a causal mask) and
/// twice that backward; embeddings count nothing (Korthikanti et al. 2022, appendix A).
ModelFlops model_flops(const ModelSpec& model, const Batch& batch);

}  // namespace fsdp
