// Waiting without spinning: a blocking MPI call burns the core that the other rank needs, so every
// wait polls, yields and ends at a time-out.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

#include "core/units/quantity.hpp"

namespace fsdp::mpi {

/// Nanoseconds of the monotonic clock.
std::int64_t now_ns();

enum class WaitResult { complete, timed_out };

/// Polls until all requests have completed or the time is over; each becomes MPI_REQUEST_NULL as it
/// completes.
/// Throws EnvironmentError with MPI's text when one fails.
WaitResult wait_all(std::span<MPI_Request> requests, Nanoseconds timeout);

/// Tells that nothing has happened for too long: it starts anew whenever the count it is shown
/// changes.
class StallClock {
 public:
  explicit StallClock(Nanoseconds limit) : limit_(limit) {}
  void restart();
  /// True when `count` has been the same for longer than the limit.
  bool stalled(std::uint64_t count);

 private:
  Nanoseconds limit_;
  std::uint64_t count_ = 0;
  std::int64_t since_ns_ = 0;
};

}  // namespace fsdp::mpi
