// What the two threads of a step tell each other: the compute stream runs on the caller's thread,
// all other streams on one communication thread. Flags carry the number of the step, so that
// nothing has to be reset between steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "bench/backend/mpi/doorbell.hpp"
#include "bench/backend/mpi/observer.hpp"
#include "core/record/timeline.hpp"

namespace fsdp::mpi {

class StepState {
 public:
  explicit StepState(std::size_t ops) : done_(ops), live_change_(ops) {}

  /// What the step in progress writes to; set before begin().
  Timeline* timeline = nullptr;
  StepObserver* observer = nullptr;
  std::int64_t start_ns = 0;

  // --- either thread, inside a step
  bool done(OpId op) const { return done_[op.index()].load(std::memory_order_acquire) == step_; }
  /// Records the span and lets those that wait for `op` go on.
  void finish(OpId op, std::int64_t begin_ns, std::int64_t end_ns);
  /// Operations finished by both threads, ever: the measure of progress.
  std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }
  void record_live(OpId op, std::int64_t change_bytes) { live_change_[op.index()] = change_bytes; }

  // --- the compute thread
  /// Wakes the communication thread; true once it stands ready.
  void summon();
  bool attended() const { return attending_.load(std::memory_order_acquire) == step_; }
  /// The step starts now.
  void begin();
  /// The communication thread has nothing left to do in this step.
  bool left() const { return left_.load(std::memory_order_acquire) == step_; }
  void cancel();
  void quit();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::exception_ptr failure() const { return failure_; }
  /// The most bytes alive at once, in the order in which the host issued the operations: the order
  /// in which a caching allocator would have seen them.
  std::int64_t peak_live_bytes() const;

  // --- the communication thread
  /// Sleeps until a step begins; false when there will be none.
  bool attend();
  /// Nothing left to do in this step.
  void leave();
  void fail(std::exception_ptr failure);
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  /// Set while the compute thread has nothing to do but wait: the communication thread then polls
  /// without napping.
  std::atomic<bool> compute_waits{false};
  Doorbell side_bell;     ///< the compute thread rings, the communication thread naps
  Doorbell compute_bell;  ///< the other way round

 private:
  std::uint32_t step_ = 0;
  std::vector<std::atomic<std::uint32_t>> done_;
  std::vector<std::int64_t> live_change_;
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<std::uint32_t> summoned_{0};
  std::atomic<std::uint32_t> attending_{0};
  std::atomic<std::uint32_t> begun_{0};
  std::atomic<std::uint32_t> left_{0};
  std::atomic<bool> quit_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace fsdp::mpi
