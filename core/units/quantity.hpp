// Quantities with their unit in the type: bytes, nanoseconds, rates. Arithmetic is allowed inside
// one unit only, so that a bandwidth can never be added to a size.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace fsdp {

/// A number of one unit. `Tag` names the unit, `Rep` is how it is stored.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return {a.value * factor}; }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Nanoseconds = Quantity<struct NanosecondsTag, std::int64_t>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Flops = Quantity<struct FlopsTag, double>;  ///< a count of floating-point operations
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

/// Binary units with at most two decimals: "25 MiB", "1.50 GiB", "96 B".
std::string to_text(Bytes bytes);
/// Decimal units with at most three significant decimals: "12.4 ms", "850 us", "3 ns".
std::string to_text(Nanoseconds time);
/// Decimal units: "50 GB/s".
std::string to_text(BytesPerSecond rate);
/// Decimal units: "245 GFLOP/s".
std::string to_text(FlopsPerSecond rate);

}  // namespace fsdp
