#include "core/model/families.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

Parameter weight(std::vector<std::int64_t> shape) {
  return {.name = "weight", .shape = std::move(shape), .tied_to = {}};
}

Parameter bias(std::int64_t length) { return {.name = "bias", .shape = {length}, .tied_to = {}}; }

Module leaf(std::string path, std::string class_name, std::vector<Parameter> parameters) {
  return {.path = std::move(path),
          .class_name = std::move(class_name),
          .parameters = std::move(parameters),
          .children = {},
          .attention = {}};
}

Module parent(std::string path, std::string class_name, std::vector<Module> children) {
  return {.path = std::move(path),
          .class_name = std::move(class_name),
          .parameters = {},
          .children = std::move(children),
          .attention = {}};
}

Module linear(std::string path, std::int64_t out, std::int64_t in) {
  return leaf(std::move(path), "Linear", {weight({out, in})});
}

Module conv1d(std::string path, std::int64_t in, std::int64_t out) {
  return leaf(std::move(path), "Conv1D", {weight({in, out}), bias(out)});
}

Module layer_norm(std::string path, std::int64_t width) {
  return leaf(std::move(path), "LayerNorm", {weight({width}), bias(width)});
}

Module rms_norm(std::string path, std::int64_t width) {
  return leaf(std::move(path), "LlamaRMSNorm", {weight({width})});
}

Module embedding(std::string path, std::int64_t rows, std::int64_t width) {
  return leaf(std::move(path), "Embedding", {weight({rows, width})});
}

/// The head's Linear whose weight is the token embedding's storage.
Module tied_head(const std::string& owner, std::int64_t vocab, std::int64_t hidden) {
  Module head = linear("lm_head", vocab, hidden);
  head.parameters[0].tied_to = owner;
  return head;
}

struct NamedDimension {
  std::string_view name;
  std::int64_t value;
};

void check_positive(std::string_view family, std::initializer_list<NamedDimension> dimensions) {
  for (const NamedDimension& dimension : dimensions) {
    if (dimension.value < 1) {
      throw UsageError(fmt::format("{}: {} is {}; it must be at least 1", family, dimension.name,
                                   dimension.value));
    }
  }
}

void check_divides(std::string_view family, NamedDimension whole, NamedDimension part) {
  if (whole.value % part.value != 0) {
    throw UsageError(fmt::format("{}: {} {} is not a multiple of {} {}", family, whole.name,
                                 whole.value, part.name, part.value));
  }
}

/// Calls of modules below `path`, all of which see an input that needs a gradient.
void call_below(std::vector<ModuleCall>& calls, const std::string& path,
                std::initializer_list<const char*> names) {
  for (const char* name : names) {
    calls.push_back({.module = join_path(path, name), .input_requires_grad = true});
  }
}

Module gpt2_block(const std::string& path, const Gpt2Dimensions& d) {
  Module attention = parent(path + ".attn", "GPT2Attention",
                            {conv1d(path + ".attn.c_attn", d.hidden, 3 * d.hidden),
                             conv1d(path + ".attn.c_proj", d.hidden, d.hidden),
                             leaf(path + ".attn.attn_dropout", "Dropout", {}),
                             leaf(path + ".attn.resid_dropout", "Dropout", {})});
  attention.attention = Attention{.heads = d.heads, .head_dim = d.hidden / d.heads};
  Module mlp = parent(path + ".mlp", "GPT2MLP",
                      {conv1d(path + ".mlp.c_fc", d.hidden, 4 * d.hidden),
                       conv1d(path + ".mlp.c_proj", 4 * d.hidden, d.hidden),
                       leaf(path + ".mlp.act", "NewGELUActivation", {}),
                       leaf(path + ".mlp.dropout", "Dropout", {})});
  return parent(path, "GPT2Block",
                {layer_norm(path + ".ln_1", d.hidden), std::move(attention),
                 layer_norm(path + ".ln_2", d.hidden), std::move(mlp)});
}

std::vector<ModuleCall> gpt2_calls(std::int64_t layers) {
  // Token and position indices need no gradient; everything after the embeddings does.
  std::vector<ModuleCall> calls{
      {"", false}, {"transformer", false}, {"transformer.wte", false}, {"transformer.wpe", false}};
  call_below(calls, "transformer", {"drop"});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string path = fmt::format("transformer.h.{}", layer);
    calls.push_back({path, true});
    call_below(calls, path,
               {"ln_1", "attn", "attn.c_attn", "attn.c_proj", "attn.resid_dropout", "ln_2", "mlp",
                "mlp.c_fc", "mlp.act", "mlp.c_proj", "mlp.dropout"});
  }
  call_below(calls, "transformer", {"ln_f"});
  call_below(calls, "", {"lm_head"});
  return calls;
}

Module llama_attention(const std::string& path, const LlamaDimensions& d) {
  const std::int64_t head_dim = d.hidden / d.heads;
  const std::int64_t kv_width = d.kv_heads * head_dim;
  Module attention = parent(
      path, "LlamaAttention",
      {linear(path + ".q_proj", d.hidden, d.hidden), linear(path + ".k_proj", kv_width, d.hidden),
       linear(path + ".v_proj", kv_width, d.hidden), linear(path + ".o_proj", d.hidden, d.hidden)});
  attention.attention = Attention{.heads = d.heads, .head_dim = head_dim};
  return attention;
}

Module llama_layer(const std::string& path, const LlamaDimensions& d) {
  // The norms are registered last although the first one runs first.
  return parent(path, "LlamaDecoderLayer",
                {llama_attention(path + ".self_attn", d),
                 parent(path + ".mlp", "LlamaMLP",
                        {linear(path + ".mlp.gate_proj", d.ffn, d.hidden),
                         linear(path + ".mlp.up_proj", d.ffn, d.hidden),
                         linear(path + ".mlp.down_proj", d.hidden, d.ffn),
                         leaf(path + ".mlp.act_fn", "SiLUActivation", {})}),
                 rms_norm(path + ".input_layernorm", d.hidden),
                 rms_norm(path + ".post_attention_layernorm", d.hidden)});
}

std::vector<ModuleCall> llama_calls(std::int64_t layers) {
  // Token indices need no gradient; everything after the embedding does.
  std::vector<ModuleCall> calls{{"", false}, {"model", false}, {"model.embed_tokens", false}};
  call_below(calls, "model", {"rotary_emb"});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string path = fmt::format("model.layers.{}", layer);
    calls.push_back({path, true});
    call_below(calls, path,
               {"input_layernorm", "self_attn", "self_attn.q_proj", "self_attn.k_proj",
                "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm", "mlp",
                "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"});
  }
  call_below(calls, "model", {"norm"});
  call_below(calls, "", {"lm_head"});
  return calls;
}

}  // namespace

ModelSpec gpt2(const std::string& name, const Gpt2Dimensions& d) {
  check_positive("gpt2", {{"hidden", d.hidden},
                          {"layers", d.layers},
                          {"heads", d.heads},
                          {"vocab", d.vocab},
                          {"positions", d.positions}});
  check_divides("gpt2", {"hidden", d.hidden}, {"heads", d.heads});
  std::vector<Module> blocks;
  for (std::int64_t layer = 0; layer < d.layers; ++layer) {
    blocks.push_back(gpt2_block(fmt::format("transformer.h.{}", layer), d));
  }
  Module transformer = parent(
      "transformer", "GPT2Model",
      {embedding("transformer.wte", d.vocab, d.hidden),
       embedding("transformer.wpe", d.positions, d.hidden), leaf("transformer.drop", "Dropout", {}),
       parent("transformer.h", "ModuleList", std::move(blocks)),
       layer_norm("transformer.ln_f", d.hidden)});
  return {.name = name,
          .scaling = {},
          .root = parent(
              "", "GPT2LMHeadModel",
              {std::move(transformer), tied_head("transformer.wte.weight", d.vocab, d.hidden)}),
          .calls = gpt2_calls(d.layers)};
}

ModelSpec llama(const std::string& name, const LlamaDimensions& d) {
  check_positive("llama", {{"hidden", d.hidden},
                           {"ffn", d.ffn},
                           {"layers", d.layers},
                           {"heads", d.heads},
                           {"kv_heads", d.kv_heads},
                           {"vocab", d.vocab}});
  check_divides("llama", {"hidden", d.hidden}, {"heads", d.heads});
  check_divides("llama", {"heads", d.heads}, {"kv_heads", d.kv_heads});
  std::vector<Module> layers;
  for (std::int64_t layer = 0; layer < d.layers; ++layer) {
    layers.push_back(llama_layer(fmt::format("model.layers.{}", layer), d));
  }
  Module inner = parent(
      "model", "LlamaModel",
      {embedding("model.embed_tokens", d.vocab, d.hidden),
       parent("model.layers", "ModuleList", std::move(layers)), rms_norm("model.norm", d.hidden),
       leaf("model.rotary_emb", "LlamaRotaryEmbedding", {})});
  Module head = d.tied ? tied_head("model.embed_tokens.weight", d.vocab, d.hidden)
                       : linear("lm_head", d.vocab, d.hidden);
  return {.name = name,
          .scaling = {},
          .root = parent("", "LlamaForCausalLM", {std::move(inner), std::move(head)}),
          .calls = llama_calls(d.layers)};
}

}  // namespace fsdp
