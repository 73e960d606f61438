// Findings of recorded cases and small models, as tests ask for them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/advice/finding.hpp"
#include "core/config/run_config.hpp"

namespace fsdp::test {

/// The run file of a case whose plan is compared with a trace of real PyTorch.
inline RunConfig recorded(const std::string& name) {
  return load_run_config(FSDP_SOURCE_DIR "/tests/golden/pytorch/" + name + "/case.yaml");
}

inline Schedule schedule_of(const RunConfig& config) {
  return build_schedule(plan_units(config.model, config.policy, *config.mesh, config.batch));
}

inline std::vector<Finding> findings_of(const RunConfig& config) {
  const Schedule schedule = schedule_of(config);
  return findings({config.model, schedule, {}});
}

inline std::vector<Finding> with_id(const std::vector<Finding>& all, const std::string& id) {
  std::vector<Finding> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const Finding& finding) { return finding.id == id; });
  return out;
}

}  // namespace fsdp::test
