#include "core/model/hf_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/model/decoder.hpp"

namespace fsdp::hf {
namespace {

/// Which projections of the attention have a bias: none, q k v, or (with o) what a key says.
enum class AttentionBias { none, qkv, attention_bias_key, qkv_bias_key };
enum class Experts { none, mixtral, qwen2, qwen3 };

/// Defaults are those of transformers; 0 means derived (kv_heads: heads, head_dim: hidden / heads).
struct DecoderFamily {
  std::string_view model_type;
  std::string_view family;
  std::string_view model_class;
  std::int64_t vocab;
  std::int64_t hidden;
  std::int64_t ffn;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  AttentionBias bias = AttentionBias::none;
  QkNorm qk_norm = QkNorm::none;
  Experts experts = Experts::none;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool tied = false;
  bool gemma = false;
  bool norms_around_mlp = false;
  bool fused = false;
};

constexpr std::array<DecoderFamily, 11> families{{
    {"llama", "Llama", "LlamaModel", 32000, 4096, 11008, 32, 32, 0, 0,
     AttentionBias::attention_bias_key},
    {"mistral", "Mistral", "MistralModel", 32000, 4096, 14336, 32, 32, 8, 0},
    {"qwen2", "Qwen2", "Qwen2Model", 151936, 4096, 22016, 32, 32, 32, 0, AttentionBias::qkv},
    {"qwen3", "Qwen3", "Qwen3Model", 151936, 4096, 22016, 32, 32, 32, 128,
     AttentionBias::attention_bias_key, QkNorm::after_each_projection},
    {.model_type = "gemma",
     .family = "Gemma",
     .model_class = "GemmaModel",
     .vocab = 256000,
     .hidden = 3072,
     .ffn = 24576,
     .layers = 28,
     .heads = 16,
     .kv_heads = 16,
     .head_dim = 256,
     .bias = AttentionBias::attention_bias_key,
     .activation = "gelu_pytorch_tanh",
     .tied = true,
     .gemma = true},
    {.model_type = "gemma2",
     .family = "Gemma2",
     .model_class = "Gemma2Model",
     .vocab = 256000,
     .hidden = 2304,
     .ffn = 9216,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .bias = AttentionBias::attention_bias_key,
     .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .tied = true,
     .gemma = true,
     .norms_around_mlp = true},
    {.model_type = "gemma3_text",
     .family = "Gemma3",
     .model_class = "Gemma3TextModel",
     .vocab = 262208,
     .hidden = 2304,
     .ffn = 9216,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .bias = AttentionBias::attention_bias_key,
     .qk_norm = QkNorm::after_all_projections,
     .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .tied = true,
     .gemma = true,
     .norms_around_mlp = true},
    {.model_type = "phi3",
     .family = "Phi3",
     .model_class = "Phi3Model",
     .vocab = 32064,
     .hidden = 3072,
     .ffn = 8192,
     .layers = 32,
     .heads = 32,
     .kv_heads = 0,
     .head_dim = 0,
     .fused = true},
    {"mixtral", "Mixtral", "MixtralModel", 32000, 4096, 14336, 32, 32, 8, 0, AttentionBias::none,
     QkNorm::none, Experts::mixtral},
    {"qwen2_moe", "Qwen2Moe", "Qwen2MoeModel", 151936, 2048, 5632, 24, 16, 16, 0,
     AttentionBias::qkv_bias_key, QkNorm::none, Experts::qwen2},
    {"qwen3_moe", "Qwen3Moe", "Qwen3MoeModel", 151936, 2048, 6144, 24, 32, 4, 0,
     AttentionBias::attention_bias_key, QkNorm::after_each_projection, Experts::qwen3},
}};

/// Layers whose index the file lists, and those that its step leaves out, hold a plain MLP.
std::vector<bool> sparse_layers(const Fields& fields, std::int64_t layers) {
  std::set<std::int64_t> plain;
  if (fields.has("mlp_only_layers")) {
    const JsonPlace list = fields.root().at("mlp_only_layers");
    list.expect_list();
    for (std::size_t i = 0; i < list.size(); ++i) {
      plain.insert(list.at(i).integer({0, layer_range.most}));
    }
  }
  const std::int64_t step =
      fields.integer({"decoder_sparse_step"}, {1, layer_range.most}).value_or(1);
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < layers; ++i) {
    sparse.push_back((i + 1) % step == 0 && !plain.contains(i));
  }
  return sparse;
}

void read_experts(const DecoderFamily& family, const Fields& fields, DecoderShape& shape) {
  constexpr JsonRange count_range{1, 1 << 16};
  // Qwen's number may be 0, which leaves plain layers only.
  const JsonRange count_or_none{family.experts == Experts::mixtral ? 1 : 0, count_range.most};
  SparseMlp sparse;
  std::int64_t count = 8;
  std::int64_t per_token = 2;
  if (family.experts == Experts::mixtral) {
    sparse.ffn = shape.ffn;
    shape.sparse_layers.assign(static_cast<std::size_t>(shape.layers), true);
  } else {
    const bool qwen2 = family.experts == Experts::qwen2;
    count = qwen2 ? 60 : 128;
    per_token = qwen2 ? 4 : 8;
    sparse.ffn = fields.extent({"moe_intermediate_size"}, qwen2 ? 1408 : 768);
    sparse.shared_ffn = qwen2 ? fields.extent({"shared_expert_intermediate_size"}, 5632) : 0;
    sparse.router = qwen2 ? RouterPlace::first : RouterPlace::after_experts;
    shape.sparse_layers = sparse_layers(fields, shape.layers);
  }
  sparse.experts =
      fields.integer({"num_local_experts", "num_experts"}, count_or_none).value_or(count);
  sparse.per_token = fields.integer({"num_experts_per_tok"}, count_range).value_or(per_token);
  if (sparse.experts == 0) {
    shape.sparse_layers.clear();
    return;
  }
  if (sparse.per_token > sparse.experts) {
    fields.root().fail(fmt::format("num_experts_per_tok {} is more than the {} experts there are",
                                   sparse.per_token, sparse.experts));
  }
  shape.sparse = sparse;
}

void read_bias(const DecoderFamily& family, const Fields& fields, DecoderShape& shape) {
  switch (family.bias) {
    case AttentionBias::none:
      return;
    case AttentionBias::qkv:
      shape.qkv_bias = true;
      return;
    case AttentionBias::attention_bias_key:
      shape.qkv_bias = fields.flag("attention_bias").value_or(false);
      shape.output_bias = shape.qkv_bias;
      return;
    case AttentionBias::qkv_bias_key:
      shape.qkv_bias = fields.flag("qkv_bias").value_or(true);
      return;
  }
}

void read_heads(const DecoderFamily& family, const Fields& fields, DecoderShape& shape) {
  shape.heads = fields.integer({"num_attention_heads"}, head_range).value_or(family.heads);
  // A key that is there but null means as many as there are heads; one that is absent, the default.
  const bool derived =
      family.kv_heads == 0 || fields.root().value().contains("num_key_value_heads");
  shape.kv_heads = fields.integer({"num_key_value_heads"}, head_range)
                       .value_or(derived ? shape.heads : family.kv_heads);
  const auto written = fields.integer({"head_dim"}, extent_range);
  if (!written && family.head_dim == 0 && shape.hidden % shape.heads != 0) {
    fields.root().fail(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                   shape.hidden, shape.heads));
  }
  if (shape.heads % shape.kv_heads != 0) {
    fields.root().fail(
        fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                    shape.heads, shape.kv_heads));
  }
  shape.head_dim =
      written.value_or(family.head_dim > 0 ? family.head_dim : shape.hidden / shape.heads);
}

Head read_head(const DecoderFamily& family, const Fields& fields) {
  const std::string causal = fmt::format("{}ForCausalLM", family.family);
  const std::string name = fields.architecture(causal);
  if (name == family.model_class) {
    return Head::none;
  }
  if (name != causal) {
    fields.fail_architecture(fmt::format("{}, {}", causal, family.model_class));
  }
  return fields.flag("tie_word_embeddings").value_or(family.tied) ? Head::tied : Head::separate;
}

std::string read_activation(const DecoderFamily& family, const Fields& fields) {
  // Early Gemma files say gelu and mean the approximation; transformers corrects them.
  if (family.model_type == "gemma" && fields.has("hidden_act") &&
      fields.root().at("hidden_act").text() == "gelu") {
    return activation_class(fields.root(), family.activation);
  }
  return fields.activation(family.activation_key, family.activation);
}

ModelSpec read_family(const DecoderFamily& family, const Fields& fields) {
  DecoderShape shape;
  shape.family = family.family;
  shape.model_class = family.model_class;
  if (family.gemma) {
    shape.embedding_class = fmt::format("{}TextScaledWordEmbedding", family.family);
  }
  shape.vocab = fields.extent({"vocab_size"}, family.vocab);
  shape.hidden = fields.extent({"hidden_size"}, family.hidden);
  shape.ffn = fields.extent({"intermediate_size"}, family.ffn);
  shape.layers = fields.integer({"num_hidden_layers"}, layer_range).value_or(family.layers);
  shape.activation = read_activation(family, fields);
  shape.fused_projections = family.fused;
  shape.norms_around_mlp = family.norms_around_mlp;
  shape.qk_norm = family.qk_norm;
  shape.mlp_bias = family.model_type == "llama" && fields.flag("mlp_bias").value_or(false);
  read_heads(family, fields, shape);
  read_bias(family, fields, shape);
  if (family.experts != Experts::none) {
    read_experts(family, fields, shape);
  }
  shape.head = read_head(family, fields);
  return build_decoder(shape);
}

}  // namespace

std::vector<std::string> decoder_types() {
  std::vector<std::string> names;
  for (const DecoderFamily& family : families) {
    names.emplace_back(family.model_type);
  }
  return names;
}

std::optional<ModelSpec> read_decoder(std::string_view model_type, const Fields& fields) {
  const auto* family =
      std::find_if(families.begin(), families.end(),
                   [&](const DecoderFamily& entry) { return entry.model_type == model_type; });
  if (family == families.end()) {
    return std::nullopt;
  }
  return read_family(*family, fields);
}

}  // namespace fsdp::hf
