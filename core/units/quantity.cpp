#include "core/units/quantity.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

namespace fsdp {
namespace {

struct Scale {
  double factor;
  std::string_view unit;
};

constexpr std::array<Scale, 6> binary_scales{{{1.0, "B"},
                                              {1024.0, "KiB"},
                                              {1048576.0, "MiB"},
                                              {1073741824.0, "GiB"},
                                              {1099511627776.0, "TiB"},
                                              {1125899906842624.0, "PiB"}}};
constexpr std::array<Scale, 4> time_scales{{{1.0, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Scale, 6> byte_rate_scales{
    {{1.0, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}}};
constexpr std::array<Scale, 6> flop_rate_scales{{{1.0, "FLOP/s"},
                                                 {1e3, "kFLOP/s"},
                                                 {1e6, "MFLOP/s"},
                                                 {1e9, "GFLOP/s"},
                                                 {1e12, "TFLOP/s"},
                                                 {1e15, "PFLOP/s"}}};

/// `value` to `digits` significant digits.
double rounded(double value, int digits) {
  if (value == 0.0 || !std::isfinite(value)) {
    return value;
  }
  const double place = std::pow(10.0, digits - 1 - static_cast<int>(std::floor(std::log10(value))));
  return std::round(value * place) / place;
}

/// The largest scale of which `magnitude`, rounded as it will be printed, still holds one: 999.9 us
/// to three digits is "1 ms" and not "1000 us".
const Scale& three_digit_scale(double magnitude, std::span<const Scale> scales) {
  std::size_t chosen = 0;
  while (chosen + 1 < scales.size() &&
         rounded(magnitude / scales[chosen].factor, 3) * scales[chosen].factor >=
             scales[chosen + 1].factor) {
    ++chosen;
  }
  return scales[chosen];
}

/// Three significant digits, more where the whole part has more, no trailing zeros.
std::string three_digits(double value, std::span<const Scale> scales) {
  const double magnitude = std::abs(value);
  const Scale& scale = three_digit_scale(magnitude, scales);
  const double scaled = magnitude / scale.factor;
  const std::string number =
      scaled >= 100.0 ? fmt::format("{:.0f}", scaled) : fmt::format("{:.3g}", scaled);
  return fmt::format("{}{} {}", value < 0.0 ? "-" : "", number, scale.unit);
}

}  // namespace

std::string to_text(Bytes bytes) {
  // As a double the magnitude of the smallest 64-bit value is representable; below 2^53 it is
  // exact.
  const double magnitude = std::abs(static_cast<double>(bytes.value));
  const char* sign = bytes.value < 0 ? "-" : "";
  std::size_t chosen = 0;
  while (chosen + 1 < binary_scales.size() &&
         std::round(magnitude / binary_scales[chosen].factor * 100.0) >= 102400.0) {
    ++chosen;
  }
  const double scaled = magnitude / binary_scales[chosen].factor;
  if (scaled == std::floor(scaled)) {
    return fmt::format("{}{:.0f} {}", sign, scaled, binary_scales[chosen].unit);
  }
  return fmt::format("{}{:.2f} {}", sign, scaled, binary_scales[chosen].unit);
}

std::string to_text(Nanoseconds time) {
  return three_digits(static_cast<double>(time.value), time_scales);
}

std::string to_text(BytesPerSecond rate) { return three_digits(rate.value, byte_rate_scales); }

std::string to_text(FlopsPerSecond rate) { return three_digits(rate.value, flop_rate_scales); }

}  // namespace fsdp
