#include "core/plan/path_patterns.hpp"

#include <algorithm>
#include <cctype>

namespace fsdp {
namespace {

bool is_number(const std::string& component) {
  return !component.empty() && std::all_of(component.begin(), component.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

/// Components joined by an escaped dot; numbers become `number` where one is given.
std::string pattern(const std::string& path, const char* number) {
  std::string out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string component = path.substr(begin, end - begin);
    out += begin == 0 ? "" : "\\.";
    out += number != nullptr && is_number(component) ? number : component;
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string exactly(const std::string& path) { return pattern(path, nullptr); }
std::string in_all_layers(const std::string& path) { return pattern(path, "\\d+"); }

}  // namespace fsdp
