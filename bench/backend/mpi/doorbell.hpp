// Lets one thread nap until another has news for it. A ring costs one atomic addition when nobody
// naps, so it may stand in a timed step.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/units/quantity.hpp"

namespace fsdp::mpi {

class Doorbell {
 public:
  /// Rings so far. Take it before looking for news, or a ring in between is missed.
  std::uint32_t ticket() const { return rings_.load(std::memory_order_acquire); }
  void ring();
  /// Returns at once when it has rung since `ticket` was taken, else on the next ring or after
  /// `most`. May return early.
  void nap(std::uint32_t ticket, Nanoseconds most);

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<bool> napping_{false};
};

}  // namespace fsdp::mpi
