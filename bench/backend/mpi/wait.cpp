#include "bench/backend/mpi/wait.hpp"

#include <sched.h>

#include <chrono>

#include "bench/backend/mpi/error.hpp"

namespace fsdp::mpi {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

WaitResult wait_all(std::span<MPI_Request> requests, Nanoseconds timeout) {
  const std::int64_t deadline = now_ns() + timeout.value;
  while (true) {
    // One by one: MPI_Testall leaves all as they were until the last is complete, and who is late
    // could not be told.
    bool complete = true;
    for (MPI_Request& request : requests) {
      int done = 1;
      if (request != MPI_REQUEST_NULL) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "waiting for messages of other ranks");
      }
      complete = complete && done != 0;
    }
    if (complete) {
      return WaitResult::complete;
    }
    if (now_ns() > deadline) {
      return WaitResult::timed_out;
    }
    sched_yield();
  }
}

void StallClock::restart() { since_ns_ = now_ns(); }

bool StallClock::stalled(std::uint64_t count) {
  const std::int64_t now = now_ns();
  if (count != count_) {
    count_ = count;
    since_ns_ = now;
  }
  return now - since_ns_ > limit_.value;
}

}  // namespace fsdp::mpi
