// Reads the headers of safetensors files, of which the weights themselves are never read.
#pragma once

#include <string>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// `path` is a safetensors file or, where it ends in ".json", an index of files beside it.
/// Throws ConfigError that names the file.
ModelSpec read_safetensors_files(const std::string& path);

}  // namespace fsdp
