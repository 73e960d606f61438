// Finds and reads the files that a run file names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/config/yaml_reader.hpp"

namespace fsdp {

struct TextFile {
  std::string path;
  std::string text;
};

/// The beginning of a file.
struct FileHead {
  std::string bytes;
  std::uint64_t file_bytes = 0;  ///< of the whole file
};

/// Throws ConfigError that names the path and the reason.
TextFile read_text_file(const std::string& path);

/// Reads the file whose path is the value: absolute, or relative to the folder of the file that
/// names it, to that folder's parent, or to the working directory, in this order.
/// Throws ConfigError at the value with all places looked at.
TextFile read_named_file(const YamlReader& value);
/// The path of the file that read_named_file would read, for files of any size.
std::string find_named_file(const YamlReader& value);
/// The first `bytes` of the file, or all of a shorter one. Throws ConfigError that names the path.
FileHead read_file_head(const std::string& path, std::size_t bytes);

}  // namespace fsdp
