#include "core/config/run_config.hpp"

#include <utility>

#include "core/config/files.hpp"
#include "core/config/read_cluster.hpp"
#include "core/config/read_model.hpp"
#include "core/config/read_policy.hpp"
#include "core/config/read_sections.hpp"
#include "core/config/yaml_reader.hpp"

namespace fsdp {
namespace {

Bytes read_limit(const YamlReader& value) {
  const Bytes limit = value.bytes();
  if (limit <= Bytes{0}) {
    value.fail("must be above 0");
  }
  return limit;
}

std::optional<Bytes> read_memory(const YamlReader& section) {
  section.expect_map({.known = {"limit"}, .later = {}});
  const auto limit = section.find("limit");
  if (!limit || limit->is_null()) {
    return std::nullopt;
  }
  return read_limit(*limit);
}

/// Everything but the model. The mesh comes first: group sizes must divide it.
void read_settings(const YamlReader& root, RunConfig& config) {
  const auto mesh = root.find("mesh");
  if (mesh && !mesh->is_null()) {
    config.mesh = read_mesh(*mesh);
  }
  const auto cluster = root.find("cluster");
  if (cluster && !cluster->is_null()) {
    config.cluster = read_cluster_value(*cluster);
  }
  if (const auto value = root.find("batch")) {
    config.batch = read_batch(*value);
  }
  if (const auto value = root.find("policy")) {
    config.policy = read_policy(*value, config.mesh);
  }
  if (const auto value = root.find("space")) {
    config.space = read_space(*value, config.mesh);
  }
  if (const auto value = root.find("memory")) {
    config.memory_limit = read_memory(*value);
  }
  if (const auto value = root.find("measure")) {
    config.measure = read_measure(*value);
  }
  if (const auto value = root.find("tune")) {
    config.tune = read_tune(*value);
  }
  if (const auto value = root.find("output")) {
    config.output = value->text();
  }
}

}  // namespace

RunConfig load_run_config_text(const std::string& text, const std::string& file) {
  const YamlReader root = YamlReader::parse(text, file);
  root.expect_map({.known = {"model", "cluster", "mesh", "batch", "policy", "space", "memory",
                             "measure", "tune", "output"},
                   .later = {}});
  RunConfig config;
  config.file = file;
  read_settings(root, config);
  ReadModel read = read_model(root.at("model"));
  config.model_source = std::move(read.source);
  config.model = std::move(read.model);
  return config;
}

RunConfig load_run_config(const std::string& path) {
  const TextFile file = read_text_file(path);
  return load_run_config_text(file.text, file.path);
}

}  // namespace fsdp
