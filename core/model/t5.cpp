#include "core/model/t5.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/model/parts.hpp"

namespace fsdp {
namespace {

using parts::CallList;
using parts::leaf;
using parts::linear;
using parts::parent;

enum class Stack { encoder, decoder };
enum class PositionBias { no, yes };

constexpr const char* shared_weight = "shared.weight";

class T5Builder {
 public:
  explicit T5Builder(const T5Shape& shape) : d_(shape) {}

  ModelSpec build() const {
    Module root = parent("", root_class(), {});
    root.children.push_back(parts::embedding("shared", {.rows = d_.vocab, .width = d_.hidden}));
    root.children.push_back(stack("encoder", Stack::encoder));
    if (d_.kind == T5Kind::encoder_decoder) {
      root.children.push_back(stack("decoder", Stack::decoder));
    }
    if (d_.head != Head::none) {
      Module head = linear("lm_head", {.out = d_.vocab, .in = d_.hidden});
      root.children.push_back(d_.head == Head::tied ? parts::tied(std::move(head), shared_weight)
                                                    : std::move(head));
    }
    ModelSpec model;
    model.name = root.class_name;
    model.root = std::move(root);
    model.calls = calls();
    return model;
  }

 private:
  std::string root_class() const {
    if (d_.kind == T5Kind::encoder_only) {
      return "T5EncoderModel";
    }
    return d_.head == Head::none ? "T5Model" : "T5ForConditionalGeneration";
  }

  std::int64_t layers(Stack stack) const {
    return stack == Stack::encoder ? d_.layers : d_.decoder_layers;
  }

  static Module norm(std::string path, std::int64_t width) {
    return parts::rms_norm(std::move(path), "T5LayerNorm", width);
  }

  Module attention(const std::string& path, PositionBias bias) const {
    const std::int64_t width = d_.heads * d_.head_dim;
    Module made = parent(path, "T5Attention",
                         {linear(path + ".q", {.out = width, .in = d_.hidden}),
                          linear(path + ".k", {.out = width, .in = d_.hidden}),
                          linear(path + ".v", {.out = width, .in = d_.hidden}),
                          linear(path + ".o", {.out = d_.hidden, .in = width})});
    if (bias == PositionBias::yes) {
      made.children.push_back(parts::embedding(path + ".relative_attention_bias",
                                               {.rows = d_.buckets, .width = d_.heads}));
    }
    made.attention = Attention{.heads = d_.heads, .head_dim = d_.head_dim};
    return made;
  }

  Module feed_forward(const std::string& path) const {
    const bool gated = d_.feed_forward == FeedForward::gated;
    Module made = parent(path, gated ? "T5DenseGatedActDense" : "T5DenseActDense", {});
    for (const char* name : gated ? std::vector{"wi_0", "wi_1"} : std::vector{"wi"}) {
      made.children.push_back(linear(join_path(path, name), {.out = d_.ffn, .in = d_.hidden}));
    }
    made.children.push_back(linear(path + ".wo", {.out = d_.hidden, .in = d_.ffn}));
    made.children.push_back(leaf(path + ".dropout", "Dropout"));
    made.children.push_back(leaf(path + ".act", d_.activation));
    return made;
  }

  /// A sublayer: the operation, its norm, its dropout.
  Module sublayer(const std::string& path, const char* class_name, Module operation) const {
    Module made = parent(path, class_name, {});
    made.children.push_back(std::move(operation));
    made.children.push_back(norm(path + ".layer_norm", d_.hidden));
    made.children.push_back(leaf(path + ".dropout", "Dropout"));
    return made;
  }

  Module block(const std::string& path, Stack stack, std::int64_t index) const {
    const PositionBias bias = index == 0 ? PositionBias::yes : PositionBias::no;
    std::vector<Module> layers;
    const std::string first = path + ".layer.0";
    layers.push_back(
        sublayer(first, "T5LayerSelfAttention", attention(first + ".SelfAttention", bias)));
    if (stack == Stack::decoder) {
      const std::string second = path + ".layer.1";
      layers.push_back(sublayer(second, "T5LayerCrossAttention",
                                attention(second + ".EncDecAttention", PositionBias::no)));
    }
    const std::string last = fmt::format("{}.layer.{}", path, layers.size());
    layers.push_back(sublayer(last, "T5LayerFF", feed_forward(last + ".DenseReluDense")));
    Module made = parent(path, "T5Block", {});
    made.children.push_back(parent(path + ".layer", "ModuleList", std::move(layers)));
    return made;
  }

  Module stack(const std::string& path, Stack kind) const {
    std::vector<Module> blocks;
    for (std::int64_t i = 0; i < layers(kind); ++i) {
      blocks.push_back(block(fmt::format("{}.block.{}", path, i), kind, i));
    }
    Module made = parent(path, "T5Stack", {});
    made.children.push_back(parts::tied(
        parts::embedding(path + ".embed_tokens", {.rows = d_.vocab, .width = d_.hidden}),
        shared_weight));
    made.children.push_back(parent(path + ".block", "ModuleList", std::move(blocks)));
    made.children.push_back(norm(path + ".final_layer_norm", d_.hidden));
    made.children.push_back(leaf(path + ".dropout", "Dropout"));
    return made;
  }

  static void call_attention(CallList& list, const std::string& layer, const char* name,
                             PositionBias bias) {
    const std::string path = join_path(layer, name);
    list.add(layer);
    list.below(layer, {"layer_norm", name});
    list.below(path, {"q", "k", "v"});
    if (bias == PositionBias::yes) {
      // Its input is a table of distances.
      list.without_gradient(path + ".relative_attention_bias");
    }
    list.below(path, {"o"});
    list.below(layer, {"dropout"});
  }

  void call_feed_forward(CallList& list, const std::string& layer) const {
    const std::string path = layer + ".DenseReluDense";
    list.add(layer);
    list.below(layer, {"layer_norm", "DenseReluDense"});
    if (d_.feed_forward == FeedForward::gated) {
      list.below(path, {"wi_0", "act", "wi_1", "dropout", "wo"});
    } else {
      list.below(path, {"wi", "act", "dropout", "wo"});
    }
    list.below(layer, {"dropout"});
  }

  void call_stack(CallList& list, const std::string& path, Stack kind) const {
    list.without_gradient(path + ".embed_tokens");
    list.below(path, {"dropout"});
    for (std::int64_t i = 0; i < layers(kind); ++i) {
      const std::string block = fmt::format("{}.block.{}", path, i);
      list.add(block);
      call_attention(list, block + ".layer.0", "SelfAttention",
                     i == 0 ? PositionBias::yes : PositionBias::no);
      if (kind == Stack::decoder) {
        call_attention(list, block + ".layer.1", "EncDecAttention", PositionBias::no);
      }
      call_feed_forward(list, block + (kind == Stack::decoder ? ".layer.2" : ".layer.1"));
    }
    list.below(path, {"final_layer_norm", "dropout"});
  }

  std::vector<ModuleCall> calls() const {
    CallList list;
    list.without_gradient("");
    list.without_gradient("encoder");
    call_stack(list, "encoder", Stack::encoder);
    if (d_.kind == T5Kind::encoder_decoder) {
      // The decoder is given the encoder's states, which need a gradient.
      list.add("decoder");
      call_stack(list, "decoder", Stack::decoder);
    }
    if (d_.head != Head::none) {
      list.add("lm_head");
    }
    return list.take();
  }

  const T5Shape& d_;
};

}  // namespace

ModelSpec build_t5(const T5Shape& shape) { return T5Builder(shape).build(); }

}  // namespace fsdp
