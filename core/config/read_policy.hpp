// Reads the `policy` section: every knob of FSDP that a run file may set.
#pragma once

#include <optional>

#include "core/config/run_config.hpp"
#include "core/config/yaml_reader.hpp"

namespace fsdp {

/// Group sizes must divide the mesh's shard group; without a mesh the planner checks them.
FsdpPolicy read_policy(const YamlReader& section, const std::optional<DeviceMesh>& mesh);

/// true (free), false (keep) or the size of a sub-group that divides the shard group.
Reshard read_reshard(const YamlReader& value, const std::optional<DeviceMesh>& mesh);

/// Ranges that the search space shares with the policy.
inline constexpr IntegerRange unit_size_range{1, 4096};
inline constexpr IntegerRange forward_depth_range{0, 64};
inline constexpr IntegerRange backward_depth_range{1, 64};

}  // namespace fsdp
