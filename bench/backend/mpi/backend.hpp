// The MPI backend's only door: what the apps and the conformance tests may name.
#pragma once

#include <memory>
#include <optional>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "core/units/quantity.hpp"

namespace fsdp::mpi {

struct SessionOptions {
  Nanoseconds timeout{60'000'000'000};  ///< of every wait
};

/// Owns MPI between initialisation and finalisation; valid after construction, one a process.
class Session {
 public:
  /// Throws EnvironmentError when MPI cannot start or gives less thread support than needed. When
  /// the scheduler started more tasks than MPI's world has ranks, the message names the --mpi
  /// setting to try.
  explicit Session(const SessionOptions& options);
  /// finish(ExitCode::ok) when that has not been called; while an exception unwinds, ends the job
  /// instead, for the other ranks may be waiting. Executors and steps are gone by then.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ControlPlane& control();
  /// `world` ranks in shard groups of consecutive ranks.
  std::unique_ptr<Executor> executor(const std::optional<FaultInjection>& fault);
  /// Barrier, then MPI's end under a watchdog that exits the process with `code` should
  /// MPI_Finalize hang. Call it once results are written, with the code that main() is about to
  /// return (the same on all ranks); the control plane is gone afterwards.
  void finish(ExitCode code) noexcept;
  /// Ends the job on all ranks at once with this code; for errors while others may be waiting.
  [[noreturn]] void abort(ExitCode code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fsdp::mpi
