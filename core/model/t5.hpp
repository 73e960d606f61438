// T5 as transformers builds it: an encoder and a decoder stack that share one token embedding.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/decoder.hpp"
#include "core/model/model_spec.hpp"

namespace fsdp {

enum class FeedForward { plain, gated };
enum class T5Kind { encoder_only, encoder_decoder };

struct T5Shape {
  std::int64_t vocab = 32128;
  std::int64_t hidden = 512;
  std::int64_t head_dim = 64;
  std::int64_t ffn = 2048;
  std::int64_t layers = 6;
  std::int64_t decoder_layers = 6;
  std::int64_t heads = 8;
  std::int64_t buckets = 32;  ///< of relative positions; block 0 of each stack has the bias
  FeedForward feed_forward = FeedForward::plain;
  std::string activation = "ReLU";
  T5Kind kind = T5Kind::encoder_decoder;
  Head head = Head::tied;  ///< none: T5Model, or T5EncoderModel
};

/// All parameters are f32 and trainable. The model's name is its root's class.
ModelSpec build_t5(const T5Shape& shape);

}  // namespace fsdp
