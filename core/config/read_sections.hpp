// Reads the sections of a run file that are about the run itself: search space, measurement,
// tuning.
#pragma once

#include <optional>

#include "core/config/run_config.hpp"
#include "core/config/yaml_reader.hpp"

namespace fsdp {

DeviceMesh read_mesh(const YamlReader& section);
Batch read_batch(const YamlReader& section);
SpaceConfig read_space(const YamlReader& section, const std::optional<DeviceMesh>& mesh);
MeasureConfig read_measure(const YamlReader& section);
TuneConfig read_tune(const YamlReader& section);

}  // namespace fsdp
