// Decoder-only models of the Llama kind as transformers builds them: one builder, told in which of
// a few places its relatives (Mistral, Qwen, Gemma, Phi-3, Mixtral) differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// What stands on top of the decoder: nothing (the bare model), or lm_head.
enum class Head { none, separate, tied };

/// Norms of queries and keys, and when they run.
enum class QkNorm { none, after_each_projection, after_all_projections };

/// Which child a mixture block registers first.
enum class RouterPlace { first, after_experts };

struct SparseMlp {
  std::int64_t experts = 8;
  std::int64_t per_token = 2;
  std::int64_t ffn = 0;         ///< of one expert
  std::int64_t shared_ffn = 0;  ///< of the expert that every token visits; 0: there is none
  RouterPlace router = RouterPlace::first;
};

struct DecoderShape {
  std::string family = "Llama";            ///< begins the class names
  std::string model_class = "LlamaModel";  ///< of the module below the head
  std::string embedding_class = "Embedding";
  std::string activation = "SiLUActivation";
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool fused_projections = false;  ///< Phi-3: qkv_proj, gate_up_proj, dropouts on the residuals
  bool norms_around_mlp = false;   ///< Gemma 2 and 3: two more norms a layer
  QkNorm qk_norm = QkNorm::none;
  Head head = Head::separate;
  std::optional<SparseMlp> sparse;
  std::vector<bool> sparse_layers;  ///< which layers hold experts; as long as there are layers
};

/// Weights of Linear modules are stored (out, in), those of experts (expert, out, in). All
/// parameters are f32 and trainable. The model's name is its root's class.
ModelSpec build_decoder(const DecoderShape& shape);

}  // namespace fsdp
