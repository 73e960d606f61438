// This process among the ranks that were started together. What starts them is chosen when the
// program is built: measuring_job_mpi.cpp where MPI is there, measuring_job_none.cpp where it is
// not.
#pragma once

#include <memory>
#include <optional>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "core/units/error.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

class Job {
 public:
  virtual ~Job() = default;
  virtual ControlPlane& control() = 0;
  /// Runs steps on this machine. Throws EnvironmentError where nothing was built that can.
  virtual std::unique_ptr<Executor> measuring_executor(
      const std::optional<FaultInjection>& fault) = 0;
  /// Leaves the job with the code that main() is about to return, the same on all ranks; nothing
  /// of the job may be used afterwards.
  virtual void finish(ExitCode code) noexcept = 0;
  /// Ends all ranks at once; for errors while others may be waiting.
  [[noreturn]] virtual void abort(ExitCode code) = 0;
};

/// Whether this program can measure at all.
enum class Measuring { built, not_built };
Measuring measuring();
/// Joins the ranks of this job. `timeout` is of every wait for another rank. Throws
/// EnvironmentError.
std::unique_ptr<Job> join_job(Nanoseconds timeout);
/// One process alone, which plans and simulates.
std::unique_ptr<Job> lone_job();

/// True when a launcher (mpiexec, srun) started this process as one of several.
bool started_among_others();

}  // namespace fsdp
