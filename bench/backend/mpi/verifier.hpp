// Looks at every gathered parameter and reduced gradient of an untimed step, inside the same
// overlapped pattern that is timed: wrong data has no speed.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "bench/backend/mpi/arena.hpp"
#include "bench/backend/mpi/observer.hpp"
#include "bench/backend/mpi/step_program.hpp"
#include "bench/executor.hpp"
#include "kernels/payload.hpp"

namespace fsdp::mpi {

/// The operation that gets a byte flipped on this rank; invalid when none does.
/// Throws UsageError when the fault names an operation, unit or rank that does not exist.
OpId fault_target(const Schedule& schedule, const FaultInjection& fault, const GroupPlace& place);

/// Known contents in every master shard of this rank; also what timed steps move.
void fill_shards(const Schedule& schedule, const Arenas& arenas, const GroupPlace& place);

class Verifier final : public StepObserver {
 public:
  Verifier(const StepProgram& program, const Arenas& arenas, OpId fault)
      : program_(&program), arenas_(&arenas), fault_(fault) {
    remember_reductions();
  }

  /// Fills the shards, poisons everything else and forgets what an earlier step found.
  void begin();
  void after(OpId op) override;
  /// The mismatch of the first operation in issue order that has one.
  std::optional<DataMismatch> first_mismatch() const { return mismatch_; }

 private:
  struct Reduction {
    BufferId from;  ///< whose parameter list gives the layout
    kernels::PayloadSum sum;
  };
  void remember_reductions();
  void inject(OpId op) const;
  void check_gathered(OpId op, BufferId buffer);
  void check_unsharded(OpId op, BufferId buffer);
  void check_reduced(OpId op, BufferId buffer, const Reduction& reduction);
  void fill_gradients(BufferId buffer) const;
  void report(OpId op, std::int64_t offset,
              const std::optional<kernels::PayloadMismatch>& mismatch);
  kernels::PayloadKey key(UnitId unit, int parameter) const;
  const UnitParameter& parameter_at(UnitId unit, int parameter) const;

  const StepProgram* program_;
  const Arenas* arenas_;
  OpId fault_;
  std::map<BufferId, Reduction> reductions_;  ///< by output
  std::mutex mutex_;                          ///< of mismatch_: both threads report
  std::optional<DataMismatch> mismatch_;
};

}  // namespace fsdp::mpi
