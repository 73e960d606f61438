#include "bench/backend/mpi/side_streams.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "core/units/error.hpp"
#include "kernels/reduce.hpp"

namespace fsdp::mpi {
namespace {

constexpr std::array side_streams{Stream::all_gather_copy_in, Stream::all_gather,
                                  Stream::reduce_scatter, Stream::all_reduce};

std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }

}  // namespace

void SideStreams::run_step() {
  next_.fill(0);
  next_collective_ = 0;
  left_to_run_ = 0;
  for (const Stream stream : side_streams) {
    left_to_run_ += setup_.program->streams[index_of(stream)].size();
  }
  stall_.restart();
  while (left_to_run_ > 0 && !setup_.state->cancelled()) {
    const std::uint32_t ticket = setup_.state->side_bell.ticket();
    bool moved = poll_collective();
    for (const Stream stream : side_streams) {
      moved = advance(stream) || moved;
    }
    if (moved) {
      continue;
    }
    if (stall_.stalled(setup_.state->finished())) {
      throw TimeoutError(fmt::format("{} within {} on rank {}: another rank is slow, stuck or gone",
                                     blocked(), to_text(setup_.timeout),
                                     setup_.communicator->rank()));
    }
    pause(ticket);
  }
}

bool SideStreams::ready(OpId op) const {
  const std::vector<OpId>& before = setup_.program->schedule[op].after;
  return std::all_of(before.begin(), before.end(),
                     [this](OpId id) { return setup_.state->done(id); });
}

/// Runs what the stream may run now; true when something moved.
bool SideStreams::advance(Stream stream) {
  const std::vector<OpId>& order = setup_.program->streams[index_of(stream)];
  std::size_t& next = next_[index_of(stream)];
  bool moved = false;
  while (next < order.size() && !(flight_ && flight_->op == order[next]) && ready(order[next])) {
    const OpId op = order[next];
    if (is_collective(setup_.program->schedule[op])) {
      if (flight_ || setup_.program->collectives[next_collective_] != op) {
        break;
      }
      start_collective(op);
      return true;
    }
    const std::int64_t begin_ns = now_ns();
    if (const auto* memory = std::get_if<BoundMemory>(&setup_.program->ops[op.index()])) {
      setup_.state->record_live(op, memory->change_bytes);
    }
    perform(*setup_.program, op, *setup_.gemms);
    if (setup_.state->observer != nullptr) {
      setup_.state->observer->after(op);
    }
    const bool takes_no_time = std::holds_alternative<BoundMemory>(setup_.program->ops[op.index()]);
    finish(op, begin_ns, takes_no_time ? begin_ns : now_ns());
    ++next;
    --left_to_run_;
    moved = true;
  }
  return moved;
}

void SideStreams::finish(OpId op, std::int64_t begin_ns, std::int64_t end_ns) {
  setup_.state->finish(op, begin_ns, end_ns);
  if (setup_.program->rings[op.index()]) {
    setup_.state->compute_bell.ring();
  }
}

void SideStreams::start_collective(OpId op) {
  Flight flight{.op = op, .request = MPI_REQUEST_NULL, .begin_ns = now_ns()};
  const BoundOp& bound = setup_.program->ops[op.index()];
  if (const auto* gather = std::get_if<BoundGather>(&bound)) {
    flight.request = setup_.communicator->start_all_gather(gather->buffer);
  } else {
    const auto& reduce = std::get<BoundReduceScatter>(bound);
    flight.request = setup_.communicator->start_reduce_scatter(reduce.from, reduce.to);
  }
  flight_ = flight;
}

bool SideStreams::poll_collective() {
  if (!flight_ || !test(flight_->request)) {
    return false;
  }
  const OpId op = flight_->op;
  const auto* reduce = std::get_if<BoundReduceScatter>(&setup_.program->ops[op.index()]);
  if (reduce != nullptr && reduce->factor != 1.0F) {
    kernels::scale(reduce->to, reduce->factor);
  }
  if (setup_.state->observer != nullptr) {
    setup_.state->observer->after(op);
  }
  finish(op, flight_->begin_ns, now_ns());
  flight_.reset();
  ++next_collective_;
  ++next_[index_of(setup_.program->schedule[op].stream)];
  --left_to_run_;
  return true;
}

/// While the compute thread waits, only yields: the sooner the collective ends, the better. While
/// it computes, naps between polls, so that polling does not take its core; and with nothing in
/// flight there is nothing to poll at all.
void SideStreams::pause(std::uint32_t ticket) {
  if (!flight_) {
    setup_.state->side_bell.nap(ticket, setup_.policy.idle);
  } else if (setup_.state->compute_waits.load(std::memory_order_relaxed)) {
    sched_yield();
  } else {
    setup_.state->side_bell.nap(ticket, setup_.policy.nap);
  }
}

std::string SideStreams::blocked() const {
  const Schedule& schedule = setup_.program->schedule;
  if (flight_) {
    return fmt::format("{} did not finish", describe(schedule, flight_->op));
  }
  for (const Stream stream : side_streams) {
    const std::vector<OpId>& order = setup_.program->streams[index_of(stream)];
    const std::size_t next = next_[index_of(stream)];
    if (next < order.size()) {
      return fmt::format("{} could not start", describe(schedule, order[next]));
    }
  }
  return "the side streams did not finish";
}

}  // namespace fsdp::mpi
