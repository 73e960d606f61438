// Prepares schedules for the ranks of one job, or says in a sentence why it does not.
#pragma once

#include <memory>
#include <optional>

#include "bench/backend/mpi/communicator.hpp"
#include "bench/backend/mpi/gemm.hpp"
#include "bench/backend/mpi/prepared_step.hpp"
#include "bench/executor.hpp"

namespace fsdp::mpi {

class MpiExecutor final : public Executor {
 public:
  struct Setup {
    MPI_Comm world = MPI_COMM_WORLD;
    ProgressPolicy policy;
    Nanoseconds timeout;
  };
  /// Collective over the world.
  MpiExecutor(const Setup& setup, const std::optional<FaultInjection>& fault);

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<PreparedStep> prepare(const Schedule& schedule) override;

 private:
  std::optional<FaultInjection> fault_;
  StepContext context_;
  Capabilities capabilities_;
};

/// Throws Unsupported for a schedule that `ranks` ranks cannot run with these capabilities.
void refuse_unsupported(const Schedule& schedule, const Capabilities& capabilities, int ranks);

}  // namespace fsdp::mpi
