// The vision transformer as transformers builds it.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/model_spec.hpp"
#include "core/model/parts.hpp"

namespace fsdp {

/// What stands on top of the encoder: a pooler (ViTModel) or a classifier.
enum class VitHead { pooler, classifier };

struct VitShape {
  std::int64_t hidden = 768;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t ffn = 3072;
  std::int64_t channels = 3;
  std::int64_t image_height = 224;
  std::int64_t image_width = 224;
  std::int64_t patch_height = 16;
  std::int64_t patch_width = 16;
  std::int64_t labels = 2;  ///< 0: the classifier is an Identity
  std::int64_t pooler_width = 768;
  std::string activation = "GELUActivation";
  std::string pooler_activation = "Tanh";
  parts::Bias qkv_bias = parts::Bias::yes;
  VitHead head = VitHead::classifier;
};

/// All parameters are f32 and trainable. The model's name is its root's class. Throws UsageError
/// when `heads` does not divide `hidden` or a patch is larger than the image.
ModelSpec build_vit(const VitShape& shape);

}  // namespace fsdp
