// Models from the config.json of Hugging Face transformers: the module tree, the ties and the calls
// of the class that transformers makes from that file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// Reads `model_type` and `architectures` and the dimensions that change parameters; a key that is
/// absent has transformers' default. Equal to what transformers 5.24 makes with one deliberate
/// exception: a T5 config with "tie_word_embeddings": false has a head of its own, as its published
/// weights have. Parameters are f32 and trainable, whatever dtype the config names.
/// Throws UsageError that starts "config.json: " and names the JSON pointer of the value.
ModelSpec read_hf_config(std::string_view json);

/// What `model_type` may be.
std::vector<std::string> hf_model_types();

}  // namespace fsdp
