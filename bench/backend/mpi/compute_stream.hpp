// The caller's part of a step: the compute stream, in order, waiting for the side streams where the
// schedule says so.
#pragma once

#include "bench/backend/mpi/progress.hpp"
#include "bench/backend/mpi/step_program.hpp"
#include "bench/backend/mpi/step_state.hpp"
#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {

class ComputeStream {
 public:
  struct Setup {
    const StepProgram* program;
    StepState* state;
    Gemms* gemms;
    ProgressPolicy policy;
    Nanoseconds timeout;
  };
  explicit ComputeStream(const Setup& setup) : setup_(setup), stall_(setup.timeout) {}

  /// Runs the stream to its end. Throws TimeoutError naming the operation waited for, or what the
  /// communication thread failed with.
  void run_step();
  /// Waits until the communication thread stands ready, or has left the step.
  void await_attendance();
  void await_side_streams();

 private:
  template <class Done>
  void wait_until(Done&& done, OpId waiting, OpId missing);
  void run_op(OpId op);

  Setup setup_;
  StallClock stall_;
};

}  // namespace fsdp::mpi
