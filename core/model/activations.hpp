// What autograd keeps between forward and backward: the part of a rank's memory that FSDP does not
// shard and that checkpointing trades for computing again.
#pragma once

#include "core/model/batch.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// Of one micro-batch on one rank, at the end of forward.
struct Activations {
  Bytes blocks;     ///< kept for all transformer blocks
  Bytes one_block;  ///< under full checkpointing: the largest block's, computed again in its turn
  Bytes outside;    ///< kept for what lies outside the blocks, logits excepted
  Bytes logits;     ///< of the last projection, their logarithms of probabilities and gradients
};

/// Tensors that autograd saves, with tokens T, elements of `computed`:
/// - a norm and a product save their input (T x width); products of the same input save it once;
/// - attention saves queries, keys and values, and T x heads f32 sums of its softmax: the fused
///   kernels that scaled_dot_product_attention picks, which keep no scores;
/// - an activation function saves its input, a gated one its output too.
/// For a GPT block of width h that is 32 T h bytes at 2 bytes an element: the 34 T h of Korthikanti
/// et al. 2022, eq. 2, without its scores and the two dropout masks. Under full checkpointing a
/// block keeps its input alone; under selective checkpointing attention's own sums are computed
/// again, which spares little where no scores are kept. Logits are kept in `computed` and, as
/// log-probabilities with their gradient, in f32 (transformers and torchtitan compute the loss in
/// f32).
Activations activations(const ModelSpec& model, const Batch& batch, DType computed,
                        Checkpointing checkpointing);

}  // namespace fsdp
