// The communication thread's part of a step: every stream but compute, strictly in order each, and
// the collectives strictly in issue order, one at a time, as NCCL runs them on one communicator.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>
#include <string>

#include "bench/backend/mpi/communicator.hpp"
#include "bench/backend/mpi/progress.hpp"
#include "bench/backend/mpi/step_program.hpp"
#include "bench/backend/mpi/step_state.hpp"
#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {

class SideStreams {
 public:
  struct Setup {
    const StepProgram* program;
    StepState* state;
    const Communicator* communicator;
    Gemms* gemms;
    ProgressPolicy policy;
    Nanoseconds timeout;
  };
  explicit SideStreams(const Setup& setup) : setup_(setup), stall_(setup.timeout) {}

  /// One step, until all side streams are at their end or the compute thread cancels it. Throws
  /// TimeoutError naming the operation that did not finish, EnvironmentError when MPI fails.
  void run_step();
  /// A collective was left in flight: MPI may still write to the arenas.
  bool collective_abandoned() const { return flight_.has_value(); }

 private:
  struct Flight {
    OpId op;
    MPI_Request request = MPI_REQUEST_NULL;
    std::int64_t begin_ns = 0;
  };
  bool advance(Stream stream);
  bool ready(OpId op) const;
  void finish(OpId op, std::int64_t begin_ns, std::int64_t end_ns);
  void start_collective(OpId op);
  bool poll_collective();
  void pause(std::uint32_t ticket);
  std::string blocked() const;

  Setup setup_;
  StallClock stall_;
  std::array<std::size_t, stream_count> next_{};
  std::size_t next_collective_ = 0;
  std::size_t left_to_run_ = 0;
  std::optional<Flight> flight_;
};

}  // namespace fsdp::mpi
