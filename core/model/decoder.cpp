#include "core/model/decoder.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/model/parts.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

using parts::Bias;
using parts::CallList;
using parts::leaf;
using parts::linear;
using parts::parent;

Bias bias_when(bool wanted) { return wanted ? Bias::yes : Bias::no; }

class DecoderBuilder {
 public:
  explicit DecoderBuilder(const DecoderShape& shape)
      : d_(shape),
        inner_(shape.head == Head::none ? "" : "model"),
        norm_class_(shape.family + "RMSNorm") {}

  ModelSpec build() const {
    Module inner = parent(inner_, d_.model_class, {});
    const std::string embedding = join_path(inner_, "embed_tokens");
    Module tokens = parts::embedding(embedding, {.rows = d_.vocab, .width = d_.hidden});
    tokens.class_name = d_.embedding_class;
    std::vector<Module> layers;
    layers.reserve(static_cast<std::size_t>(d_.layers));
    for (std::int64_t i = 0; i < d_.layers; ++i) {
      layers.push_back(layer(i));
    }
    inner.children.push_back(std::move(tokens));
    inner.children.push_back(parent(join_path(inner_, "layers"), "ModuleList", std::move(layers)));
    inner.children.push_back(norm(join_path(inner_, "norm"), d_.hidden));
    inner.children.push_back(leaf(join_path(inner_, "rotary_emb"), d_.family + "RotaryEmbedding"));
    ModelSpec model;
    model.root = d_.head == Head::none ? std::move(inner) : with_head(std::move(inner), embedding);
    model.name = model.root.class_name;
    model.calls = calls();
    return model;
  }

 private:
  std::string layer_path(std::int64_t index) const {
    return join_path(inner_, fmt::format("layers.{}", index));
  }

  bool is_sparse(std::int64_t index) const {
    return d_.sparse && d_.sparse_layers.at(static_cast<std::size_t>(index));
  }

  Module norm(std::string path, std::int64_t width) const {
    return parts::rms_norm(std::move(path), norm_class_, width);
  }

  Module with_head(Module inner, const std::string& embedding) const {
    Module head = linear("lm_head", {.out = d_.vocab, .in = d_.hidden});
    if (d_.head == Head::tied) {
      head = parts::tied(std::move(head), embedding + ".weight");
    }
    Module root = parent("", d_.family + "ForCausalLM", {});
    root.children.push_back(std::move(inner));
    root.children.push_back(std::move(head));
    return root;
  }

  Module attention(const std::string& path) const {
    const std::int64_t width = d_.heads * d_.head_dim;
    const std::int64_t kv_width = d_.kv_heads * d_.head_dim;
    const Bias qkv = bias_when(d_.qkv_bias);
    const auto project = [&](const char* name, std::int64_t out) {
      return linear(path + name, {.out = out, .in = d_.hidden, .bias = qkv});
    };
    Module output = linear(path + ".o_proj",
                           {.out = d_.hidden, .in = width, .bias = bias_when(d_.output_bias)});
    Module made = parent(path, d_.family + "Attention", {});
    if (d_.fused_projections) {
      made.children = {std::move(output), project(".qkv_proj", width + 2 * kv_width)};
    } else {
      made.children = {project(".q_proj", width), project(".k_proj", kv_width),
                       project(".v_proj", kv_width), std::move(output)};
    }
    if (d_.qk_norm != QkNorm::none) {
      made.children.push_back(norm(path + ".q_norm", d_.head_dim));
      made.children.push_back(norm(path + ".k_norm", d_.head_dim));
    }
    made.attention = Attention{.heads = d_.heads, .head_dim = d_.head_dim};
    return made;
  }

  Module dense_mlp(const std::string& path, std::int64_t ffn) const {
    const Bias bias = bias_when(d_.mlp_bias);
    Module down = linear(path + ".down_proj", {.out = d_.hidden, .in = ffn, .bias = bias});
    if (d_.fused_projections) {
      return parent(
          path, d_.family + "MLP",
          {linear(path + ".gate_up_proj", {.out = 2 * ffn, .in = d_.hidden, .bias = bias}),
           std::move(down), leaf(path + ".activation_fn", d_.activation)});
    }
    return parent(path, d_.family + "MLP",
                  {linear(path + ".gate_proj", {.out = ffn, .in = d_.hidden, .bias = bias}),
                   linear(path + ".up_proj", {.out = ffn, .in = d_.hidden, .bias = bias}),
                   std::move(down), leaf(path + ".act_fn", d_.activation)});
  }

  Module sparse_mlp(const std::string& path) const {
    const SparseMlp& sparse = *d_.sparse;
    Module router = leaf(path + ".gate", d_.family + "TopKRouter",
                         {parts::weight({sparse.experts, d_.hidden})});
    Module experts = parent(path + ".experts", d_.family + "Experts",
                            {leaf(path + ".experts.act_fn", d_.activation)});
    experts.parameters = {parts::weight({sparse.experts, 2 * sparse.ffn, d_.hidden}),
                          parts::weight({sparse.experts, d_.hidden, sparse.ffn})};
    experts.parameters[0].name = "gate_up_proj";
    experts.parameters[1].name = "down_proj";
    experts.experts = Experts{.count = sparse.experts, .per_token = sparse.per_token};
    Module made = parent(path, d_.family + "SparseMoeBlock", {});
    if (sparse.router == RouterPlace::first) {
      made.children = {std::move(router), std::move(experts)};
    } else {
      made.children = {std::move(experts), std::move(router)};
    }
    if (sparse.shared_ffn > 0) {
      made.children.push_back(dense_mlp(path + ".shared_expert", sparse.shared_ffn));
      made.children.push_back(linear(path + ".shared_expert_gate", {.out = 1, .in = d_.hidden}));
    }
    return made;
  }

  Module layer(std::int64_t index) const {
    const std::string path = layer_path(index);
    // The norms are registered last although the first one runs first.
    Module made = parent(path, d_.family + "DecoderLayer", {});
    made.children.reserve(6);
    made.children.push_back(attention(path + ".self_attn"));
    made.children.push_back(is_sparse(index) ? sparse_mlp(path + ".mlp")
                                             : dense_mlp(path + ".mlp", d_.ffn));
    made.children.push_back(norm(path + ".input_layernorm", d_.hidden));
    made.children.push_back(norm(path + ".post_attention_layernorm", d_.hidden));
    if (d_.norms_around_mlp) {
      made.children.push_back(norm(path + ".pre_feedforward_layernorm", d_.hidden));
      made.children.push_back(norm(path + ".post_feedforward_layernorm", d_.hidden));
    }
    if (d_.fused_projections) {
      made.children.push_back(leaf(path + ".resid_attn_dropout", "Dropout"));
      made.children.push_back(leaf(path + ".resid_mlp_dropout", "Dropout"));
    }
    return made;
  }

  void call_attention(CallList& list, const std::string& path) const {
    list.add(path);
    if (d_.fused_projections) {
      list.below(path, {"qkv_proj"});
    } else if (d_.qk_norm == QkNorm::after_each_projection) {
      list.below(path, {"q_proj", "q_norm", "k_proj", "k_norm", "v_proj"});
    } else {
      list.below(path, {"q_proj", "k_proj", "v_proj"});
    }
    if (d_.qk_norm == QkNorm::after_all_projections) {
      list.below(path, {"q_norm", "k_norm"});
    }
    list.below(path, {"o_proj"});
  }

  void call_dense_mlp(CallList& list, const std::string& path) const {
    list.add(path);
    if (d_.fused_projections) {
      list.below(path, {"gate_up_proj", "activation_fn", "down_proj"});
    } else {
      list.below(path, {"gate_proj", "act_fn", "up_proj", "down_proj"});
    }
  }

  void call_sparse_mlp(CallList& list, const std::string& path) const {
    list.add(path);
    if (d_.sparse->shared_ffn > 0) {
      call_dense_mlp(list, path + ".shared_expert");
    }
    list.below(path, {"gate", "experts", "experts.act_fn"});
    if (d_.sparse->shared_ffn > 0) {
      list.below(path, {"shared_expert_gate"});
    }
  }

  void call_layer(CallList& list, std::int64_t index) const {
    const std::string path = layer_path(index);
    list.add(path);
    list.below(path, {"input_layernorm"});
    call_attention(list, path + ".self_attn");
    if (d_.fused_projections) {
      list.below(path, {"resid_attn_dropout"});
    }
    list.below(path, {"post_attention_layernorm"});
    if (d_.norms_around_mlp) {
      list.below(path, {"pre_feedforward_layernorm"});
    }
    if (is_sparse(index)) {
      call_sparse_mlp(list, path + ".mlp");
    } else {
      call_dense_mlp(list, path + ".mlp");
    }
    if (d_.norms_around_mlp) {
      list.below(path, {"post_feedforward_layernorm"});
    }
    if (d_.fused_projections) {
      list.below(path, {"resid_mlp_dropout"});
    }
  }

  std::vector<ModuleCall> calls() const {
    // Token indices need no gradient; everything after the embedding does.
    CallList list;
    list.without_gradient("");
    if (d_.head != Head::none) {
      list.without_gradient(inner_);
    }
    list.without_gradient(join_path(inner_, "embed_tokens"));
    list.below(inner_, {"rotary_emb"});
    for (std::int64_t i = 0; i < d_.layers; ++i) {
      call_layer(list, i);
    }
    list.below(inner_, {"norm"});
    if (d_.head != Head::none) {
      list.add("lm_head");
    }
    return list.take();
  }

  const DecoderShape& d_;
  std::string inner_;
  std::string norm_class_;
};

}  // namespace

ModelSpec build_decoder(const DecoderShape& shape) {
  expects(!shape.sparse || shape.sparse_layers.size() == static_cast<std::size_t>(shape.layers),
          "sparse_layers says of every layer whether it holds experts");
  return DecoderBuilder(shape).build();
}

}  // namespace fsdp
