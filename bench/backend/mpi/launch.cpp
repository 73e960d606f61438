#include "bench/backend/mpi/launch.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/units/error.hpp"

namespace fsdp::mpi {

std::optional<LaunchHint> tasks_started() {
  // The launcher nearest to this process speaks first: mpiexec inside an allocation sets PMI_SIZE.
  constexpr std::array variables{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS",
                                 "SLURM_NTASKS"};
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr) {
      continue;
    }
    const std::string_view digits(text);
    int tasks = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), tasks);
    if (error == std::errc() && end == digits.end()) {
      return LaunchHint{.tasks = tasks, .variable = variable};
    }
  }
  return std::nullopt;
}

void refuse_lonely_tasks(int world) {
  const std::optional<LaunchHint> hint = tasks_started();
  if (world == 1 && hint && hint->tasks > 1) {
    throw EnvironmentError(fmt::format(
        "{} tasks were started ({}), but MPI's world has one rank: launcher and MPI do not speak "
        "the same protocol. Under Slurm start with `srun --mpi=pmi2` (MPICH); elsewhere with the "
        "mpiexec of the MPI this program was built with",
        hint->tasks, hint->variable));
  }
}

}  // namespace fsdp::mpi
