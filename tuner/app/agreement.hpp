// How ranks agree before and after the work: one configuration, one list of plans, one exit code.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/control_plane.hpp"
#include "core/config/run_config.hpp"
#include "core/units/error.hpp"

namespace fsdp {

/// A run file as this rank read it: a configuration, or why there is none.
struct LoadedConfig {
  std::optional<RunConfig> config;
  ExitCode code = ExitCode::ok;
  std::string message;
};

/// A failure that all ranks know of in the same words.
struct SharedFailure {
  ExitCode code = ExitCode::environment;
  std::string message;
};

/// Collective. A failure when any rank has no configuration (the worst code, failing ranks named)
/// or ranks have different ones (code 5, ranks that differ from rank 0 named).
std::optional<SharedFailure> agree_on_config(ControlPlane& control, const LoadedConfig& loaded);

/// Collective. Throws EnvironmentError on all ranks when they would run different plans, which
/// only happens when hosts compute different floating-point results.
void agree_on_plans(ControlPlane& control, const std::vector<std::string>& hashes);

/// Collective: the worst code over ranks.
ExitCode agree_on_exit(ControlPlane& control, ExitCode code);

/// "0-2,5": places whose flag is set.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace fsdp
