// Reads quantities as people write them in run files. Every quantity carries its unit; a bare
// number is refused, because "80" of memory means nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/units/quantity.hpp"

namespace fsdp {

/// A value, or the reason why the text is not one ("needs a unit: B, KiB, MiB, GiB, ...").
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string reason;
};

/// "25 MiB", "1e9 B", "80 GB": binary and decimal prefixes mean what they say.
Parsed<Bytes> parse_bytes(std::string_view text);
/// "20 us", "1.5 s", "10 min".
Parsed<Nanoseconds> parse_duration(std::string_view text);
/// "50 GB/s", "12.5 GiB/s".
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text);
/// "245 GFLOP/s", "0.8 PFLOP/s".
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);
/// "2 %" is 0.02.
Parsed<double> parse_percent(std::string_view text);

}  // namespace fsdp
