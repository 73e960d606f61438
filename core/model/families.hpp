// Model families whose module tree follows from a few dimensions: the same module paths, class
// names, registration order and call order as the Hugging Face classes of the same name.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// GPT2LMHeadModel: learned positions, biases everywhere, the head tied to the token embedding.
struct Gpt2Dimensions {
  std::int64_t hidden = 768;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t vocab = 50257;
  std::int64_t positions = 1024;

  friend bool operator==(const Gpt2Dimensions&, const Gpt2Dimensions&) = default;
};

/// LlamaForCausalLM: rotary positions, grouped key and value heads, no biases.
struct LlamaDimensions {
  std::int64_t hidden = 4096;
  std::int64_t ffn = 14336;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t vocab = 128256;
  bool tied = false;  ///< the head is the token embedding

  friend bool operator==(const LlamaDimensions&, const LlamaDimensions&) = default;
};

/// Weights of Conv1D modules are stored (in, out). All parameters are f32 and trainable.
/// Throws UsageError when a dimension is below 1 or `heads` does not divide `hidden`.
ModelSpec gpt2(const std::string& name, const Gpt2Dimensions& dimensions);
/// Weights of Linear modules are stored (out, in). All parameters are f32 and trainable.
/// Throws UsageError when a dimension is below 1, `heads` does not divide `hidden` or `kv_heads`
/// does not divide `heads`.
ModelSpec llama(const std::string& name, const LlamaDimensions& dimensions);

}  // namespace fsdp
