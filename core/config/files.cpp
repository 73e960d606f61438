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

/// The path, or why it is no file.
Parsed<std::string> locate(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) {
    return {std::nullopt, failure ? failure.message() : "not a file"};
  }
  return {path.string(), ""};
}

/// The text, or why there is none.
Parsed<std::string> slurp(const fs::path& path) {
  const Parsed<std::string> located = locate(path);
  if (!located.value) {
    return located;
  }
  std::error_code failure;
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

/// What `read` makes of the first of the places where the value's file may be.
template <class Read>
std::string first_that_reads(const YamlReader& value, Read read) {
  const std::string named = value.text();
  if (named.find('\0') != std::string::npos) {
    value.fail("a path must not hold a zero byte");
  }
  std::string tried;
  for (const fs::path& path : candidates(named, value.file())) {
    Parsed<std::string> result = read(path);
    if (result.value) {
      return std::move(*result.value);
    }
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", path.string(), result.reason);
  }
  value.fail(fmt::format("no such file '{}'", named), "looked for " + tried);
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
  std::string path;
  std::string text = first_that_reads(value, [&path](const fs::path& candidate) {
    path = candidate.string();
    return slurp(candidate);
  });
  return {std::move(path), std::move(text)};
}

std::string find_named_file(const YamlReader& value) { return first_that_reads(value, locate); }

FileHead read_file_head(const std::string& path, std::size_t bytes) {
  const auto fail = [&path](const std::string& reason) {
    throw ConfigError({.file = path, .line = 0, .column = 0, .key = ""},
                      "cannot be read: " + reason, "check the path");
  };
  std::error_code failure;
  const Parsed<std::string> located = locate(path);
  if (!located.value) {
    fail(located.reason);
  }
  FileHead head{.bytes = {}, .file_bytes = fs::file_size(path, failure)};
  std::ifstream stream(path, std::ios::binary);
  if (failure || !stream) {
    fail(failure ? failure.message() : std::strerror(errno));
  }
  head.bytes.resize(static_cast<std::size_t>(std::min<std::uintmax_t>(bytes, head.file_bytes)));
  stream.read(head.bytes.data(), static_cast<std::streamsize>(head.bytes.size()));
  if (!stream) {
    fail("reading failed");
  }
  return head;
}

}  // namespace fsdp
