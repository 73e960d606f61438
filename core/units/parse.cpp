#include "core/units/parse.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

namespace fsdp {
namespace {

struct Unit {
  std::string_view text;
  double factor;
};

constexpr std::array<Unit, 12> byte_units{{{"B", 1.0},
                                           {"KiB", 1024.0},
                                           {"MiB", 1048576.0},
                                           {"GiB", 1073741824.0},
                                           {"TiB", 1099511627776.0},
                                           {"PiB", 1125899906842624.0},
                                           {"kB", 1e3},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"PB", 1e15}}};
constexpr std::array<Unit, 6> time_units{
    {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr std::array<Unit, 9> byte_rate_units{{{"B/s", 1.0},
                                               {"KiB/s", 1024.0},
                                               {"MiB/s", 1048576.0},
                                               {"GiB/s", 1073741824.0},
                                               {"TiB/s", 1099511627776.0},
                                               {"kB/s", 1e3},
                                               {"MB/s", 1e6},
                                               {"GB/s", 1e9},
                                               {"TB/s", 1e12}}};
constexpr std::array<Unit, 6> flop_rate_units{{{"FLOP/s", 1.0},
                                               {"kFLOP/s", 1e3},
                                               {"MFLOP/s", 1e6},
                                               {"GFLOP/s", 1e9},
                                               {"TFLOP/s", 1e12},
                                               {"PFLOP/s", 1e15}}};
constexpr std::array<Unit, 1> percent_units{{{"%", 0.01}}};

/// The largest double below 2^63: anything above does not fit a 64-bit count.
constexpr double largest_count = 9223372036854774784.0;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string listed(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) {
    names += names.empty() ? "" : ", ";
    names += unit.text;
  }
  return names;
}

struct NumberAndUnit {
  double number = 0.0;
  const Unit* unit = nullptr;
};

/// Splits "25 MiB" into its number and its entry of `units`.
Parsed<NumberAndUnit> split(std::string_view text, std::span<const Unit> units) {
  const std::string_view clean = trimmed(text);
  double number = 0.0;
  const auto [rest, failure] = std::from_chars(clean.data(), clean.data() + clean.size(), number);
  if (failure == std::errc::result_out_of_range) {
    return {std::nullopt, fmt::format("'{}' is out of range", clean)};
  }
  if (failure != std::errc{} || !std::isfinite(number)) {
    return {std::nullopt,
            fmt::format("'{}' is not a number with a unit ({})", clean, listed(units))};
  }
  if (std::signbit(number)) {
    return {std::nullopt, fmt::format("'{}' must not be negative", clean)};
  }
  const std::string_view name =
      trimmed(clean.substr(static_cast<std::size_t>(rest - clean.data())));
  if (name.empty()) {
    return {std::nullopt, fmt::format("'{}' needs a unit: {}", clean, listed(units))};
  }
  for (const Unit& unit : units) {
    if (unit.text == name) {
      return {NumberAndUnit{number, &unit}, ""};
    }
  }
  return {std::nullopt, fmt::format("'{}' has the unknown unit '{}'; units here are {}", clean,
                                    name, listed(units))};
}

/// A count stored as a 64-bit integer, rounded to the nearest whole one.
template <class Count>
Parsed<Count> parse_count(std::string_view text, std::span<const Unit> units) {
  const Parsed<NumberAndUnit> parts = split(text, units);
  if (!parts.value) {
    return {std::nullopt, parts.reason};
  }
  const double count = std::round(parts.value->number * parts.value->unit->factor);
  if (!(count <= largest_count)) {
    return {std::nullopt, fmt::format("'{}' is too large", trimmed(text))};
  }
  if (count == 0.0 && parts.value->number > 0.0) {
    return {std::nullopt, fmt::format("'{}' is less than one {}", trimmed(text), units[0].text)};
  }
  return {Count{static_cast<std::int64_t>(count)}, ""};
}

template <class Rate>
Parsed<Rate> parse_rate(std::string_view text, std::span<const Unit> units) {
  const Parsed<NumberAndUnit> parts = split(text, units);
  if (!parts.value) {
    return {std::nullopt, parts.reason};
  }
  const double rate = parts.value->number * parts.value->unit->factor;
  if (!std::isfinite(rate)) {
    return {std::nullopt, fmt::format("'{}' is too large", trimmed(text))};
  }
  return {Rate{rate}, ""};
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) { return parse_count<Bytes>(text, byte_units); }

Parsed<Nanoseconds> parse_duration(std::string_view text) {
  return parse_count<Nanoseconds>(text, time_units);
}

Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse_rate<BytesPerSecond>(text, byte_rate_units);
}

Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse_rate<FlopsPerSecond>(text, flop_rate_units);
}

Parsed<double> parse_percent(std::string_view text) {
  const Parsed<NumberAndUnit> parts = split(text, percent_units);
  if (!parts.value) {
    return {std::nullopt, parts.reason};
  }
  // Dividing, and not multiplying by 0.01, makes "3 %" the double nearest to 0.03.
  return {parts.value->number / 100.0, ""};
}

}  // namespace fsdp
