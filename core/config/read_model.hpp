// Reads the `model` key: a model file, a config.json of transformers, saved weights, a module tree,
// or a family's dimensions written in place.
#pragma once

#include "core/config/run_config.hpp"
#include "core/config/yaml_reader.hpp"

namespace fsdp {

struct ReadModel {
  ModelSource source;
  ModelSpec model;
};

ReadModel read_model(const YamlReader& value);

}  // namespace fsdp
