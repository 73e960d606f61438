#include "bench/backend/mpi/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace fsdp::mpi {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

// std::atomic::wait knows no time-out, and a condition variable would take a lock a ring.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

void Doorbell::ring() {
  rings_.fetch_add(1);
  if (napping_.load()) {
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

void Doorbell::nap(std::uint32_t ticket, Nanoseconds most) {
  const timespec limit{.tv_sec = most.value / second_ns, .tv_nsec = most.value % second_ns};
  napping_.store(true);
  if (rings_.load() == ticket) {
    // The kernel compares once more, so a ring between these two lines is not lost.
    syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, ticket, &limit, nullptr, 0);
  }
  napping_.store(false);
}

}  // namespace fsdp::mpi
