// Reads a wrap rule of the policy.
#pragma once

#include <string>
#include <vector>

#include "core/config/yaml_reader.hpp"
#include "core/model/fsdp_policy.hpp"

namespace fsdp {

WrapRule read_wrap(const YamlReader& wrap);
/// A list of different names; `what` names one of them in errors.
std::vector<std::string> read_names(const YamlReader& list, const char* what);
/// Elements, as a whole number or in YAML's exponent form (100e6).
std::int64_t read_elements(const YamlReader& value);

}  // namespace fsdp
