// Reads the presets of the policy: what a training framework's own code decides.
#pragma once

#include <optional>

#include "core/config/yaml_reader.hpp"
#include "core/model/fsdp_policy.hpp"

namespace fsdp {

/// True where the preset is llm-foundry's, the only one of FSDP1.
bool names_foundry(const YamlReader& section);
/// `preset: torchtitan | accelerate | torchtune` with the framework's own keys in a mapping of the
/// same name. Nothing without a preset. `section` is the whole policy.
std::optional<Preset> read_preset(const YamlReader& section);

/// `preset: llm-foundry` stands for plain arguments of FSDP1, composer's defaults; keys beside it
/// override them. Does nothing for other presets.
void apply_foundry_preset(const YamlReader& section, FsdpPolicy& policy);

}  // namespace fsdp
