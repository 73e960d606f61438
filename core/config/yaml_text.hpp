// Values as YAML text that reads back to exactly the same value.
#pragma once

#include <string>

#include "core/units/quantity.hpp"

namespace fsdp {

/// Plain where that is safe, in double quotes elsewhere.
std::string yaml_string(const std::string& text);
/// The largest binary unit that divides the value: "80 GiB", "1536 B".
std::string yaml_bytes(Bytes bytes);
/// The largest unit that divides the value: "10 min", "1500 ms".
std::string yaml_duration(Nanoseconds time);
std::string yaml_flops_per_second(FlopsPerSecond rate);
/// 0.02 is "2 %".
std::string yaml_percent(double fraction);

}  // namespace fsdp
