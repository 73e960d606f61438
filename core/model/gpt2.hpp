// GPT-2 as transformers builds it.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/decoder.hpp"
#include "core/model/model_spec.hpp"

namespace fsdp {

enum class CrossAttention { no, yes };

struct Gpt2Shape {
  std::int64_t vocab = 50257;
  std::int64_t positions = 1024;
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t ffn = 3072;
  std::string activation = "NewGELUActivation";
  Head head = Head::tied;
  /// Registered in every block; only a forward with an encoder's states calls it.
  CrossAttention cross_attention = CrossAttention::no;
};

/// Weights of Conv1D modules are stored (in, out). All parameters are f32 and trainable. The
/// model's name is its root's class. Throws UsageError when `heads` does not divide `hidden`.
ModelSpec build_gpt2(const Gpt2Shape& shape);

}  // namespace fsdp
