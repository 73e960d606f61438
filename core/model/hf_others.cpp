// Configurations of GPT-2, T5 and the vision transformer.
#include <fmt/format.h>

#include <utility>

#include "core/model/gpt2.hpp"
#include "core/model/hf_fields.hpp"
#include "core/model/t5.hpp"
#include "core/model/vit.hpp"

namespace fsdp::hf {
namespace {

struct Area {
  std::int64_t height;
  std::int64_t width;
};

/// One number, or a list of height and width.
Area area(const Fields& fields, const char* key, std::int64_t otherwise) {
  if (!fields.has(key)) {
    return {otherwise, otherwise};
  }
  const JsonPlace place = fields.root().at(key);
  if (!place.value().is_array()) {
    const std::int64_t side = place.integer(extent_range);
    return {side, side};
  }
  if (place.size() != 2) {
    place.fail("must be a number or a list of height and width");
  }
  return {place.at(std::size_t{0}).integer(extent_range),
          place.at(std::size_t{1}).integer(extent_range)};
}

std::int64_t labels(const Fields& fields) {
  if (const auto number = fields.integer({"num_labels"}, {0, extent_range.most})) {
    return *number;
  }
  if (!fields.has("id2label")) {
    return 2;
  }
  const JsonPlace map = fields.root().at("id2label");
  map.expect_object();
  return static_cast<std::int64_t>(map.size());
}

/// "relu", "gated-gelu": the activation, and whether a second projection multiplies it.
void read_feed_forward(const Fields& fields, T5Shape& shape) {
  if (!fields.has("feed_forward_proj")) {
    return;
  }
  const JsonPlace place = fields.root().at("feed_forward_proj");
  std::string text = place.text();
  const std::string gated = "gated-";
  if (text.starts_with(gated)) {
    shape.feed_forward = FeedForward::gated;
    text = text.substr(gated.size());
    // T5 v1.1 says gelu and means the approximation; transformers reads it so.
    text = text == "gelu" ? "gelu_new" : text;
  }
  shape.activation = activation_class(place, text);
}

}  // namespace

ModelSpec read_gpt2(const Fields& fields) {
  Gpt2Shape shape;
  shape.vocab = fields.extent({"vocab_size"}, shape.vocab);
  shape.positions = fields.extent({"n_positions", "max_position_embeddings"}, shape.positions);
  shape.hidden = fields.extent({"n_embd", "hidden_size"}, shape.hidden);
  shape.layers = fields.integer({"n_layer", "num_hidden_layers"}, layer_range).value_or(12);
  shape.heads = fields.integer({"n_head", "num_attention_heads"}, head_range).value_or(12);
  shape.ffn = fields.extent({"n_inner"}, 4 * shape.hidden);
  shape.activation = fields.activation("activation_function", "gelu_new");
  shape.cross_attention =
      fields.flag("add_cross_attention").value_or(false) ? CrossAttention::yes : CrossAttention::no;
  shape.head = fields.flag("tie_word_embeddings").value_or(true) ? Head::tied : Head::separate;
  const std::string name = fields.architecture("GPT2LMHeadModel");
  if (name == "GPT2Model") {
    shape.head = Head::none;
  } else if (name != "GPT2LMHeadModel") {
    fields.fail_architecture("GPT2LMHeadModel, GPT2Model");
  }
  return build_gpt2(shape);
}

ModelSpec read_t5(const Fields& fields) {
  T5Shape shape;
  shape.vocab = fields.extent({"vocab_size"}, shape.vocab);
  shape.hidden = fields.extent({"d_model", "hidden_size"}, shape.hidden);
  shape.head_dim = fields.extent({"d_kv", "head_dim"}, shape.head_dim);
  shape.ffn = fields.extent({"d_ff"}, shape.ffn);
  shape.layers = fields.integer({"num_layers", "num_hidden_layers"}, layer_range).value_or(6);
  shape.decoder_layers = fields.integer({"num_decoder_layers"}, layer_range).value_or(shape.layers);
  shape.heads = fields.integer({"num_heads", "num_attention_heads"}, head_range).value_or(8);
  shape.buckets = fields.extent({"relative_attention_num_buckets"}, shape.buckets);
  shape.head = fields.flag("tie_word_embeddings").value_or(true) ? Head::tied : Head::separate;
  read_feed_forward(fields, shape);
  const std::string name = fields.architecture("T5ForConditionalGeneration");
  if (name == "T5Model" || name == "T5EncoderModel") {
    shape.head = Head::none;
    shape.kind = name == "T5Model" ? T5Kind::encoder_decoder : T5Kind::encoder_only;
  } else if (name != "T5ForConditionalGeneration" && name != "T5WithLMHeadModel") {
    fields.fail_architecture("T5ForConditionalGeneration, T5Model, T5EncoderModel");
  }
  return build_t5(shape);
}

ModelSpec read_vit(const Fields& fields) {
  VitShape shape;
  shape.hidden = fields.extent({"hidden_size"}, shape.hidden);
  shape.layers = fields.integer({"num_hidden_layers"}, layer_range).value_or(shape.layers);
  shape.heads = fields.integer({"num_attention_heads"}, head_range).value_or(shape.heads);
  shape.ffn = fields.extent({"intermediate_size"}, shape.ffn);
  shape.channels = fields.extent({"num_channels"}, shape.channels);
  const Area image = area(fields, "image_size", shape.image_height);
  const Area patch = area(fields, "patch_size", shape.patch_height);
  shape.image_height = image.height;
  shape.image_width = image.width;
  shape.patch_height = patch.height;
  shape.patch_width = patch.width;
  shape.labels = labels(fields);
  shape.pooler_width = fields.extent({"pooler_output_size"}, shape.hidden);
  shape.activation = fields.activation("hidden_act", "gelu");
  shape.pooler_activation = fields.activation("pooler_act", "tanh");
  shape.qkv_bias = fields.flag("qkv_bias").value_or(true) ? parts::Bias::yes : parts::Bias::no;
  const std::string name = fields.architecture("ViTForImageClassification");
  if (name == "ViTModel") {
    shape.head = VitHead::pooler;
  } else if (name != "ViTForImageClassification") {
    fields.fail_architecture("ViTForImageClassification, ViTModel");
  }
  return build_vit(shape);
}

}  // namespace fsdp::hf
