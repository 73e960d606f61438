// A schedule on this rank: arenas, products, bound operations and the communication thread that
// waits for the next step.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "bench/backend/mpi/communicator.hpp"
#include "bench/backend/mpi/gemm.hpp"
#include "bench/backend/mpi/observer.hpp"
#include "bench/backend/mpi/progress.hpp"
#include "bench/executor.hpp"

namespace fsdp::mpi {

/// What all steps of one executor share.
struct StepContext {
  std::shared_ptr<const Communicator> communicator;
  std::shared_ptr<const GemmEngine> gemm_engine;
  ProgressPolicy policy;
  Nanoseconds timeout;
};

class MpiStep final : public PreparedStep {
 public:
  /// The schedule is one that this backend supports.
  MpiStep(const Schedule& schedule, const StepContext& context,
          const std::optional<FaultInjection>& fault);
  ~MpiStep() override;
  MpiStep(const MpiStep&) = delete;
  MpiStep& operator=(const MpiStep&) = delete;

  /// Throws TimeoutError naming the operation that did not finish; the job is to be aborted then,
  /// for a collective cannot be taken back, and this step never runs again.
  void run(Timeline& timeline) override;
  std::optional<DataMismatch> run_verified() override;
  Allocation allocation() const override;

 private:
  struct Core;
  void run_step(Timeline& timeline, StepObserver* observer);
  void stop_after_failure();

  std::unique_ptr<Core> core_;
  std::thread communication_thread_;
  Bytes peak_live_;
  bool broken_ = false;
};

}  // namespace fsdp::mpi
