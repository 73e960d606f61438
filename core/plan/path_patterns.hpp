// Regular expressions for paths of modules and parameters, as presets and remedies write them.
#pragma once

#include <string>

namespace fsdp {

/// Matches `path` alone: "model.norm" -> "model\.norm".
std::string exactly(const std::string& path);
/// Matches `path` in all layers: "layers.3.attn.wq" -> "layers\.\d+\.attn\.wq".
std::string in_all_layers(const std::string& path);

}  // namespace fsdp
