#include "bench/backend/mpi/finalize.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "bench/backend/mpi/error.hpp"
#include "bench/backend/mpi/wait.hpp"

// MPICH disconnects every endpoint in MPI_Finalize, and over tcp one rank can wait for ever for a
// flush while the others already sit in the process manager's barrier (openucx/ucx issue 8738). The
// program's own definition comes before the library's; a null result means "nothing to wait for".
// The connections end with the process a moment later. Unused where MPI does not run over UCX.
extern "C" void* ucp_disconnect_nb(void* /*endpoint*/) { return nullptr; }

namespace fsdp::mpi {
namespace {

constexpr std::chrono::seconds finalize_limit{5};
constexpr Nanoseconds drain{20'000'000};
constexpr std::chrono::milliseconds last_words{200};

/// Ends the process with the given code unless it is destroyed in time.
class Watchdog {
 public:
  explicit Watchdog(ExitCode code) : thread_([this, code] { watch(code); }) {}
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(ExitCode code) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, finalize_limit, [this] { return over_; })) {
      _exit(static_cast<int>(code));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

/// With the disconnect gone nobody flushes: give answers that are still on their way a moment.
void drain_messages() {
  const std::int64_t end_ns = now_ns() + drain.value;
  while (now_ns() < end_ns) {
    int found = 0;
    check_or_log(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE),
                 "MPI_Iprobe");
    sched_yield();
  }
}

}  // namespace

void finalize_under_watchdog(ExitCode code) {
  drain_messages();
  std::fflush(nullptr);  // _exit would lose what is still in the streams' buffers
  const Watchdog watchdog(code);
  check_or_log(MPI_Finalize(), "MPI_Finalize");
}

void abort_job(ExitCode code) noexcept {
  std::fflush(nullptr);
  const Watchdog watchdog(code);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) {
    // A launcher that is told to abort may drop what it has not forwarded yet.
    std::this_thread::sleep_for(last_words);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  }
  _exit(static_cast<int>(code));
}

}  // namespace fsdp::mpi
