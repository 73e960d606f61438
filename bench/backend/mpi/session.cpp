#include <fmt/format.h>
#include <malloc.h>
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <optional>

#include "bench/backend/mpi/backend.hpp"
#include "bench/backend/mpi/control_plane.hpp"
#include "bench/backend/mpi/error.hpp"
#include "bench/backend/mpi/executor.hpp"
#include "bench/backend/mpi/finalize.hpp"
#include "bench/backend/mpi/launch.hpp"

namespace fsdp::mpi {
namespace {

/// MPICH takes fresh scratch memory a reduce-scatter; handed back to the kernel each time, its page
/// faults cost more than the data. The heap keeps it instead, one heap for both threads.
void keep_scratch_memory() {
  constexpr int never = 1 << 30;
  constexpr int top_pad_bytes = 64 << 20;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, never);
  mallopt(M_TOP_PAD, top_pad_bytes);
  mallopt(M_ARENA_MAX, 1);
}

/// The compute thread and the communication thread call MPI by turns, never at once.
void start_mpi() {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "starting MPI");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "starting MPI");
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    throw EnvironmentError(
        "this MPI does not let two threads call it by turns (MPI_THREAD_SERIALIZED). Use an MPI "
        "that was built with thread support");
  }
}

int world_size() {
  int size = 1;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "asking for the number of ranks");
  return size;
}

}  // namespace

struct Session::State {
  SessionOptions options;
  ProgressPolicy policy;
  std::optional<MpiControlPlane> control;
  int exceptions_before = 0;
  bool finished = false;
};

Session::Session(const SessionOptions& options) : state_(std::make_unique<State>()) {
  keep_scratch_memory();
  start_mpi();
  try {
    refuse_lonely_tasks(world_size());
    state_->options = options;
    state_->exceptions_before = std::uncaught_exceptions();
    state_->policy = progress_policy(local_share(MPI_COMM_WORLD));
    state_->control.emplace(MPI_COMM_WORLD, options.timeout);
  } catch (const Error& error) {
    finalize_under_watchdog(error.exit_code());
    throw;
  }
}

Session::~Session() {
  if (std::uncaught_exceptions() > state_->exceptions_before) {
    // Others may be waiting for this rank, and finalising would wait for them.
    std::fprintf(stderr, "fsdp-tune: rank %d ends the job because of an unhandled error\n",
                 state_->control->rank());
    abort_job(ExitCode::environment);
  }
  if (!state_->finished) {
    finish(ExitCode::ok);
  }
}

ControlPlane& Session::control() { return *state_->control; }

std::unique_ptr<Executor> Session::executor(const std::optional<FaultInjection>& fault) {
  return std::make_unique<MpiExecutor>(
      MpiExecutor::Setup{
          .world = MPI_COMM_WORLD, .policy = state_->policy, .timeout = state_->options.timeout},
      fault);
}

void Session::finish(ExitCode code) noexcept {
  if (state_->finished) {
    return;
  }
  state_->finished = true;
  try {
    state_->control->barrier("end of the job");
  } catch (const Error& error) {
    std::fprintf(stderr, "fsdp-tune: %s\n", error.what());
    abort_job(worst(code, error.exit_code()));
  }
  state_->control.reset();
  finalize_under_watchdog(code);
}

void Session::abort(ExitCode code) { abort_job(code); }

}  // namespace fsdp::mpi
