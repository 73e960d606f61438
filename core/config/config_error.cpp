#include <fmt/format.h>

#include <algorithm>

#include "core/config/run_config.hpp"

namespace fsdp {
namespace {

std::string message(const ConfigError::Place& place, const std::string& reason,
                    const std::string& suggestion) {
  std::string text = place.file;
  if (place.line > 0) {
    text += fmt::format(":{}:{}", place.line, place.column);
  }
  text += ": ";
  if (!place.key.empty()) {
    text += place.key + ": ";
  }
  text += reason;
  if (!suggestion.empty()) {
    text += "; " + suggestion;
  }
  // Keys and values come from the file and may hold line breaks; a message is one line.
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == '\x7f'; }, ' ');
  return text;
}

}  // namespace

ConfigError::ConfigError(const Place& place, const std::string& reason,
                         const std::string& suggestion)
    : Error(ExitCode::usage, message(place, reason, suggestion)),
      place_(place),
      reason_(reason),
      suggestion_(suggestion) {}

}  // namespace fsdp
