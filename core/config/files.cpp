#include "core/config/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace fsdp {
namespace {

namespace fs = std::filesystem;

/// Configurations are small; a larger file was named by mistake.
constexpr std::uintmax_t largest_file = std::uintmax_t{256} << 20;

/// The text, or why there is none.
Parsed<std::string> slurp(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) {
    return {std::nullopt, failure ? failure.message() : "not a file"};
  }
  if (fs::file_size(path, failure) > largest_file || failure) {
    return {std::nullopt, failure ? failure.message() : "larger than 256 MiB"};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return {std::nullopt, std::strerror(errno)};
  }
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) {
    return {std::nullopt, "reading failed"};
  }
  return {std::move(text), ""};
}

std::vector<fs::path> candidates(const fs::path& named, const fs::path& base) {
  if (named.is_absolute()) {
    return {named};
  }
  const fs::path folder = base.parent_path();
  std::vector<fs::path> paths;
  for (const fs::path& path : {folder / named, folder / ".." / named, named}) {
    const fs::path clean = path.lexically_normal();
    if (std::find(paths.begin(), paths.end(), clean) == paths.end()) {
      paths.push_back(clean);
    }
  }
  return paths;
}

}  // namespace

TextFile read_text_file(const std::string& path) {
  Parsed<std::string> read = slurp(path);
  if (!read.value) {
    throw ConfigError({.file = path, .line = 0, .column = 0, .key = ""},
                      "cannot be read: " + read.reason, "check the path");
  }
  return {path, std::move(*read.value)};
}

TextFile read_named_file(const YamlReader& value) {
  const std::string named = value.text();
  if (named.find('\0') != std::string::npos) {
    value.fail("a path must not hold a zero byte");
  }
  std::string tried;
  for (const fs::path& path : candidates(named, value.file())) {
    Parsed<std::string> read = slurp(path);
    if (read.value) {
      return {path.string(), std::move(*read.value)};
    }
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", path.string(), read.reason);
  }
  value.fail(fmt::format("no such file '{}'", named), "looked for " + tried);
}

}  // namespace fsdp
