// How the ranks of this job were started, as far as environment variables tell.
#pragma once

#include <optional>
#include <string>

namespace fsdp::mpi {

struct LaunchHint {
  int tasks = 1;
  std::string variable;  ///< where the number comes from
};

/// How many tasks the launcher says it has started; absent when none speaks.
std::optional<LaunchHint> tasks_started();

/// Throws EnvironmentError when more tasks were started than MPI has ranks: every task then
/// believes to be alone.
void refuse_lonely_tasks(int world);

}  // namespace fsdp::mpi
