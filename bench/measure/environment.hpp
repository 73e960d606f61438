// Where and with what a run happened, for its record: an allow-list, never the whole environment.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "core/record/run_record.hpp"

namespace fsdp {

/// Version of this program and the git state it was configured from.
std::string_view tool_version();
std::string_view git_state();

/// Environment variables that may enter a record: names, and prefixes that end in '*'.
std::span<const std::string_view> recorded_variables();
bool is_recorded_variable(std::string_view name);

/// Collective: hosts are gathered over ranks; everything else is this rank's.
EnvironmentInfo environment_info(ControlPlane& control, const Capabilities& capabilities);

/// Memory that this rank may still take without starving the ranks it shares a host with: the
/// host's available memory over its ranks, minimum over all ranks. Nothing where the system does
/// not say. Collective.
std::optional<Bytes> available_memory_per_rank(ControlPlane& control);

}  // namespace fsdp
