// The `policy` section as text.
#pragma once

#include <string>
#include <vector>

#include "core/model/fsdp_policy.hpp"

namespace fsdp {

std::string print_policy(const FsdpPolicy& policy);
/// true, false or a group size.
std::string yaml_reshard(Reshard reshard);
/// [a, "b c"].
std::string yaml_names(const std::vector<std::string>& names);

}  // namespace fsdp
