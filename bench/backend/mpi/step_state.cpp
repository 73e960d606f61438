#include "bench/backend/mpi/step_state.hpp"

#include <sched.h>

#include <algorithm>

namespace fsdp::mpi {

void StepState::finish(OpId op, std::int64_t begin_ns, std::int64_t end_ns) {
  timeline->spans[op.index()] = {.start_ns = begin_ns - start_ns, .end_ns = end_ns - start_ns};
  done_[op.index()].store(step_, std::memory_order_release);
  finished_.fetch_add(1, std::memory_order_relaxed);
}

void StepState::summon() {
  ++step_;
  compute_waits.store(false, std::memory_order_relaxed);
  std::fill(live_change_.begin(), live_change_.end(), 0);
  summoned_.store(step_, std::memory_order_release);
  summoned_.notify_one();
}

void StepState::begin() { begun_.store(step_, std::memory_order_release); }

void StepState::cancel() {
  cancelled_.store(true, std::memory_order_release);
  side_bell.ring();
}

void StepState::quit() {
  quit_.store(true, std::memory_order_release);
  summoned_.store(step_ + 1, std::memory_order_release);
  summoned_.notify_one();
}

std::int64_t StepState::peak_live_bytes() const {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const std::int64_t change : live_change_) {
    live += change;
    peak = std::max(peak, live);
  }
  return peak;
}

bool StepState::attend() {
  // left_ is this thread's own memory of the last step.
  const std::uint32_t last = left_.load(std::memory_order_relaxed);
  summoned_.wait(last, std::memory_order_acquire);
  if (quit_.load(std::memory_order_acquire)) {
    return false;
  }
  const std::uint32_t step = last + 1;
  attending_.store(step, std::memory_order_release);
  while (begun_.load(std::memory_order_acquire) != step) {
    if (cancelled()) {
      break;
    }
    sched_yield();
  }
  return true;
}

void StepState::leave() {
  left_.fetch_add(1, std::memory_order_acq_rel);
  compute_bell.ring();
}

void StepState::fail(std::exception_ptr failure) {
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  compute_bell.ring();
}

}  // namespace fsdp::mpi
