// Configurations of decoder-only models, told by `model_type`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/hf_fields.hpp"

namespace fsdp::hf {

std::vector<std::string> decoder_types();
/// Nothing for a model_type that is no decoder of this kind.
std::optional<ModelSpec> read_decoder(std::string_view model_type, const Fields& fields);

}  // namespace fsdp::hf
