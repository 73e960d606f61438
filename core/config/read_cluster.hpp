// Reads a cluster: a file of its own, or the same keys in place in a run file.
#pragma once

#include "core/config/yaml_reader.hpp"
#include "core/model/cluster_spec.hpp"

namespace fsdp {

/// The keys of a cluster file.
ClusterSpec read_cluster(const YamlReader& map);
/// The `cluster` key: a path, or a cluster file's keys.
ClusterSpec read_cluster_value(const YamlReader& value);

}  // namespace fsdp
