#include "core/model/gpt2.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/model/parts.hpp"

namespace fsdp {
namespace {

using parts::conv1d;
using parts::layer_norm;
using parts::leaf;
using parts::parent;

Module attention(const std::string& path, const Gpt2Shape& d, CrossAttention cross) {
  Module made = parent(path, "GPT2Attention", {});
  if (cross == CrossAttention::yes) {
    made.children.push_back(conv1d(path + ".c_attn", {.in = d.hidden, .out = 2 * d.hidden}));
    made.children.push_back(conv1d(path + ".q_attn", {.in = d.hidden, .out = d.hidden}));
  } else {
    made.children.push_back(conv1d(path + ".c_attn", {.in = d.hidden, .out = 3 * d.hidden}));
  }
  made.children.push_back(conv1d(path + ".c_proj", {.in = d.hidden, .out = d.hidden}));
  made.children.push_back(leaf(path + ".attn_dropout", "Dropout"));
  made.children.push_back(leaf(path + ".resid_dropout", "Dropout"));
  made.attention = Attention{.heads = d.heads, .head_dim = d.hidden / d.heads};
  return made;
}

Module block(const std::string& path, const Gpt2Shape& d) {
  Module made = parent(path, "GPT2Block", {});
  made.children.push_back(layer_norm(path + ".ln_1", d.hidden));
  made.children.push_back(attention(path + ".attn", d, CrossAttention::no));
  made.children.push_back(layer_norm(path + ".ln_2", d.hidden));
  if (d.cross_attention == CrossAttention::yes) {
    made.children.push_back(attention(path + ".crossattention", d, CrossAttention::yes));
    made.children.push_back(layer_norm(path + ".ln_cross_attn", d.hidden));
  }
  made.children.push_back(
      parent(path + ".mlp", "GPT2MLP",
             {conv1d(path + ".mlp.c_fc", {.in = d.hidden, .out = d.ffn}),
              conv1d(path + ".mlp.c_proj", {.in = d.ffn, .out = d.hidden}),
              leaf(path + ".mlp.act", d.activation), leaf(path + ".mlp.dropout", "Dropout")}));
  return made;
}

std::string block_path(const std::string& inner, std::int64_t index) {
  return join_path(inner, fmt::format("h.{}", index));
}

std::vector<ModuleCall> calls(const std::string& inner, const Gpt2Shape& d) {
  // Token and position indices need no gradient; everything after the embeddings does.
  parts::CallList list;
  list.without_gradient("");
  if (d.head != Head::none) {
    list.without_gradient(inner);
  }
  list.without_gradient(join_path(inner, "wte"));
  list.without_gradient(join_path(inner, "wpe"));
  list.below(inner, {"drop"});
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const std::string path = block_path(inner, i);
    list.add(path);
    list.below(path, {"ln_1", "attn", "attn.c_attn", "attn.c_proj", "attn.resid_dropout", "ln_2",
                      "mlp", "mlp.c_fc", "mlp.act", "mlp.c_proj", "mlp.dropout"});
  }
  list.below(inner, {"ln_f"});
  if (d.head != Head::none) {
    list.add("lm_head");
  }
  return list.take();
}

}  // namespace

ModelSpec build_gpt2(const Gpt2Shape& d) {
  parts::check_divides("gpt2", {"hidden", d.hidden}, {"heads", d.heads});
  const std::string inner = d.head == Head::none ? "" : "transformer";
  std::vector<Module> blocks;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    blocks.push_back(block(block_path(inner, i), d));
  }
  const std::string tokens = join_path(inner, "wte");
  Module root =
      parent(inner, "GPT2Model",
             {parts::embedding(tokens, {.rows = d.vocab, .width = d.hidden}),
              parts::embedding(join_path(inner, "wpe"), {.rows = d.positions, .width = d.hidden}),
              leaf(join_path(inner, "drop"), "Dropout")});
  root.children.push_back(parent(join_path(inner, "h"), "ModuleList", std::move(blocks)));
  root.children.push_back(layer_norm(join_path(inner, "ln_f"), d.hidden));
  if (d.head != Head::none) {
    Module head = parts::linear("lm_head", {.out = d.vocab, .in = d.hidden});
    if (d.head == Head::tied) {
      head = parts::tied(std::move(head), tokens + ".weight");
    }
    Module transformer = std::move(root);
    root = parent("", "GPT2LMHeadModel", {});
    root.children.push_back(std::move(transformer));
    root.children.push_back(std::move(head));
  }
  ModelSpec model;
  model.name = root.class_name;
  model.root = std::move(root);
  model.calls = calls(inner, d);
  return model;
}

}  // namespace fsdp
