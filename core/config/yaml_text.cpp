#include "core/config/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>

#include "core/units/parse.hpp"

namespace fsdp {
namespace {

struct IntegerUnit {
  std::int64_t factor;
  std::string_view text;
};

/// From the largest unit to the smallest.
std::string in_largest_unit(std::int64_t value, std::span<const IntegerUnit> units) {
  for (const IntegerUnit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return fmt::format("{} {}", value / unit.factor, unit.text);
    }
  }
  return fmt::format("{} {}", value, units.back().text);
}

bool is_plain(const std::string& text) {
  constexpr std::array<std::string_view, 6> words{"true", "false", "null", "yes", "no", "on"};
  const bool safe = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
           c == '-' || c == '+';
  });
  // Starting with a letter or '_' keeps numbers, '~', '-' and '.inf' out.
  return safe && !text.empty() &&
         (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_') &&
         std::none_of(words.begin(), words.end(), [&text](std::string_view word) {
           return std::equal(
               text.begin(), text.end(), word.begin(), word.end(),
               [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
         });
}

}  // namespace

std::string yaml_string(const std::string& text) {
  if (is_plain(text)) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20U || c == '\x7f') {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string yaml_bytes(Bytes bytes) {
  constexpr std::array<IntegerUnit, 5> units{{{std::int64_t{1} << 40, "TiB"},
                                              {std::int64_t{1} << 30, "GiB"},
                                              {std::int64_t{1} << 20, "MiB"},
                                              {std::int64_t{1} << 10, "KiB"},
                                              {1, "B"}}};
  return in_largest_unit(bytes.value, units);
}

std::string yaml_duration(Nanoseconds time) {
  constexpr std::array<IntegerUnit, 5> units{
      {{60'000'000'000, "min"}, {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};
  return in_largest_unit(time.value, units);
}

std::string yaml_flops_per_second(FlopsPerSecond rate) {
  constexpr std::array<std::pair<double, const char*>, 2> units{
      {{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}}};
  for (const auto& [factor, unit] : units) {
    const std::string text = fmt::format("{} {}", rate.value / factor, unit);
    if (rate.value >= factor && parse_flops_per_second(text).value == rate) {
      return text;
    }
  }
  return fmt::format("{} FLOP/s", rate.value);
}

std::string yaml_percent(double fraction) {
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = fmt::format("{:.{}g} %", fraction * 100.0, digits);
    if (parse_percent(text).value == fraction) {
      return text;
    }
  }
  return fmt::format("{:.17g} %", fraction * 100.0);
}

}  // namespace fsdp
