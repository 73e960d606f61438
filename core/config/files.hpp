// Finds and reads the files that a run file names.
#pragma once

#include <string>

#include "core/config/yaml_reader.hpp"

namespace fsdp {

struct TextFile {
  std::string path;
  std::string text;
};

/// Throws ConfigError that names the path and the reason.
TextFile read_text_file(const std::string& path);

/// Reads the file whose path is the value: absolute, or relative to the folder of the file that
/// names it, to that folder's parent, or to the working directory, in this order.
/// Throws ConfigError at the value with all places looked at.
TextFile read_named_file(const YamlReader& value);

}  // namespace fsdp
