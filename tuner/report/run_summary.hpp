// What a command found out, before it becomes a record or a text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/executor.hpp"
#include "core/config/run_config.hpp"
#include "core/record/run_record.hpp"
#include "tuner/search/decision.hpp"
#include "tuner/search/trial.hpp"

namespace fsdp {

struct RunSummary {
  std::string command;  ///< "tune", "replay"
  DeviceMesh mesh;
  std::vector<Trial> trials;
  Decision decision;
  int enumerated = 0;
  int duplicates = 0;
  std::optional<ClusterSpec> cluster;
  Capabilities capabilities;
  EnvironmentInfo environment;
};

/// The record of `summary`; `config` is echoed into it.
RunRecord to_record(const RunSummary& summary, const RunConfig& config);

/// "measured", or "simulated: not a measurement".
std::string provenance(const Capabilities& capabilities);

}  // namespace fsdp
