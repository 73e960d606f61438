#include "bench/backend/mpi/compute_stream.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "core/units/error.hpp"

namespace fsdp::mpi {

void ComputeStream::run_step() {
  for (const OpId op : setup_.program->streams[static_cast<std::size_t>(Stream::compute)]) {
    for (const OpId before : setup_.program->schedule[op].after) {
      wait_until([&] { return setup_.state->done(before); }, op, before);
    }
    run_op(op);
  }
}

void ComputeStream::await_attendance() {
  wait_until([&] { return setup_.state->attended(); }, {}, {});
}

void ComputeStream::await_side_streams() {
  wait_until([&] { return setup_.state->left(); }, {}, {});
}

/// `waiting` and `missing` are for the error's text only.
template <class Done>
void ComputeStream::wait_until(Done&& done, OpId waiting, OpId missing) {
  StepState& state = *setup_.state;
  if (done()) {
    return;
  }
  state.compute_waits.store(true, std::memory_order_relaxed);
  state.side_bell.ring();
  stall_.restart();
  const std::int64_t nap_from_ns = now_ns() + setup_.policy.compute_yields.value;
  while (true) {
    const std::uint32_t ticket = state.compute_bell.ticket();
    if (done()) {
      break;
    }
    if (state.failed()) {
      std::rethrow_exception(state.failure());
    }
    if (stall_.stalled(state.finished())) {
      const Schedule& schedule = setup_.program->schedule;
      throw TimeoutError(
          fmt::format("{} did not finish within {} on rank {}{}",
                      missing.valid() ? describe(schedule, missing) : "the communication thread",
                      to_text(setup_.timeout), setup_.program->place.rank,
                      waiting.valid() ? "; waited for by " + describe(schedule, waiting) : ""));
    }
    if (now_ns() < nap_from_ns) {
      sched_yield();
    } else {
      state.compute_bell.nap(ticket, setup_.policy.idle);
    }
  }
  state.compute_waits.store(false, std::memory_order_relaxed);
}

void ComputeStream::run_op(OpId op) {
  StepState& state = *setup_.state;
  const std::int64_t begin_ns = now_ns();
  const auto* memory = std::get_if<BoundMemory>(&setup_.program->ops[op.index()]);
  if (memory != nullptr) {
    state.record_live(op, memory->change_bytes);
  } else {
    perform(*setup_.program, op, *setup_.gemms);
  }
  if (state.observer != nullptr) {
    state.observer->after(op);
  }
  state.finish(op, begin_ns, memory != nullptr ? begin_ns : now_ns());
  if (setup_.program->rings[op.index()]) {
    state.side_bell.ring();
  }
}

}  // namespace fsdp::mpi
