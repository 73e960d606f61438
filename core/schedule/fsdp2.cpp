#include "core/schedule/fsdp2.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/schedule/prefetch_lists.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// From this release a shard group of one rank copies locally instead of calling collectives.
constexpr Version local_copies_since{2, 9};
/// From this release post-backward waits for the reduce-scatter before even when it has nothing to
/// reduce itself; recorded from 2.14 and not from 2.8, and read in 2.12's code.
constexpr Version waits_without_gradients_since{2, 12};

}  // namespace

Fsdp2::Fsdp2(const WrapPlan& plan, const FsdpPolicy& policy)
    : plan_(plan),
      policy_(policy),
      states_(plan.units.size()),
      forward_lists_(forward_prefetch_lists(plan, policy.forward_prefetch)),
      backward_lists_(backward_prefetch_lists(plan, policy.backward_prefetch)) {}

Schedule Fsdp2::build() {
  for (std::size_t i = 0; i < plan_.units.size(); ++i) {
    const FsdpUnit& unit = plan_.units[i];
    const UnitId id{static_cast<std::int32_t>(i)};
    states_[i].shard = resident(buffer(BufferKind::shard, id, unit.shard_numel));
  }
  ops_.begin(Phase::forward, 0);
  for (const TraceStep& step : plan_.trace) {
    switch (step.kind) {
      case TraceStep::Kind::enter:
        pre_forward(step.unit);
        break;
      case TraceStep::Kind::compute:
        compute(step, During::forward);
        break;
      case TraceStep::Kind::exit:
        post_forward(step.unit);
        break;
    }
  }
  root_post_forward();
  ops_.begin(Phase::backward, 0);
  for (auto step = plan_.trace.rbegin(); step != plan_.trace.rend(); ++step) {
    switch (step->kind) {
      case TraceStep::Kind::exit:
        if (step->requires_grad) {
          pre_backward(step->unit);
        }
        break;
      case TraceStep::Kind::compute:
        compute(*step, During::backward);
        break;
      case TraceStep::Kind::enter:
        if (step->requires_grad && state(step->unit).in_backward) {
          post_backward(step->unit);
        }
        break;
    }
  }
  root_post_backward();
  return {.plan = plan_,
          .policy = to_text(policy_),
          .buffers = std::move(buffers_),
          .ops = ops_.take()};
}

void Fsdp2::pre_forward(UnitId unit) {
  unshard(unit);
  wait_for_unshard(unit, During::forward);
  for (const UnitId next : forward_lists_[unit.index()]) {
    unshard(next);
  }
}

void Fsdp2::post_forward(UnitId unit) {
  if (unit_at(unit).reshard_after_forward == Reshard::free()) {
    reshard(unit);
  }
  state(unit).runs.push_back(static_cast<int>(post_forward_order_.size()));
  post_forward_order_.push_back(unit);
}

void Fsdp2::root_post_forward() {
  if (held_) {
    gather_waits_for(held_->copied_out);
    free(held_->output);
    held_.reset();
  }
}

void Fsdp2::pre_backward(UnitId unit) {
  state(unit).in_backward = true;
  unshard(unit);
  wait_for_unshard(unit, During::backward);
  prefetch_backward(unit);
}

/// Explicit lists replace the default: the unit before this one in post-forward order.
void Fsdp2::prefetch_backward(UnitId unit) {
  if (!backward_lists_[unit.index()].empty()) {
    for (const UnitId target : backward_lists_[unit.index()]) {
      unshard(target);
    }
    return;
  }
  if (state(unit).runs.empty()) {
    return;
  }
  const int run = state(unit).runs.back();
  state(unit).runs.pop_back();
  if (run > 0) {
    unshard(post_forward_order_[static_cast<std::size_t>(run - 1)]);
  }
}

void Fsdp2::post_backward(UnitId unit) {
  reshard(unit);
  const bool reduces = !state(unit).grads.empty();
  if (reduces || policy_.version >= waits_without_gradients_since) {
    release_inputs();
  }
  if (reduces) {
    reduce(unit);
  }
}

/// The end of the whole backward: units whose inputs needed no gradient are reduced here, root
/// first.
void Fsdp2::root_post_backward() {
  std::vector<std::int32_t> order(plan_.units.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return plan_.units[static_cast<std::size_t>(a)].module_order <
           plan_.units[static_cast<std::size_t>(b)].module_order;
  });
  for (const std::int32_t index : order) {
    finalize_backward({index});
  }
  while (!in_flight_.empty()) {
    release_oldest_input();
  }
  for (const Stream stream : {Stream::all_gather_copy_in, Stream::all_gather,
                              Stream::reduce_scatter, Stream::all_reduce}) {
    if (const auto newest = ops_.newest(stream)) {
      ops_.wait(Stream::compute, *newest);
    }
  }
  ops_.add(StepEnd{}, Stream::compute, {});
}

void Fsdp2::finalize_backward(UnitId unit) {
  State& s = state(unit);
  if (s.unsharded.valid()) {
    post_backward(unit);
  }
  if (s.reduced.valid()) {
    ops_.wait(Stream::compute, s.reduced);
  }
  if (s.pending && collectives()) {  // a prefetch of a unit that backward never reached
    ops_.wait(Stream::compute, s.gathered);
    ops_.wait(Stream::all_gather_copy_in, s.gathered);
    free(s.gather_output);
  }
  s.pending = false;
}

void Fsdp2::unshard(UnitId unit) {
  State& s = state(unit);
  if (s.pending || s.unsharded.valid()) {
    return;
  }
  if (!collectives()) {
    s.pending = true;
    return;
  }
  const FsdpUnit& u = unit_at(unit);
  constexpr Stream stream = Stream::all_gather_copy_in;
  BufferId source = s.shard;
  if (u.param_dtype != u.master_dtype) {
    source = allocate(buffer(BufferKind::cast_shard, unit, u.shard_numel));
    ops_.add(Cast{s.shard, source}, stream, unit);
  }
  s.gather_output = allocate(buffer(BufferKind::all_gather_output, unit, u.padded_numel));
  const OpId copied = ops_.add(CopyIn{source, s.gather_output}, stream, unit);
  if (source != s.shard) {
    free(source);
  }
  ops_.wait(Stream::all_gather, copied);
  s.gathered = ops_.add(AllGather{.group = GroupKind::shard,
                                  .buffer = s.gather_output,
                                  .send = u.shard_numel,
                                  .recv = u.padded_numel,
                                  .dtype = u.param_dtype},
                        Stream::all_gather, unit);
  s.pending = true;
}

void Fsdp2::wait_for_unshard(UnitId unit, During during) {
  State& s = state(unit);
  if (!s.pending) {
    return;
  }
  s.pending = false;
  if (!collectives()) {
    unshard_locally(unit);
    return;
  }
  const std::optional<Held> previous =
      during == During::forward ? std::exchange(held_, {}) : std::nullopt;
  if (previous) {
    gather_waits_for(previous->copied_out);
  }
  ops_.wait(Stream::compute, s.gathered);
  const FsdpUnit& u = unit_at(unit);
  s.unsharded = allocate(buffer(BufferKind::unsharded, unit, u.padded_numel));
  if (previous) {
    // Only now: a local variable of PyTorch's keeps the output of the gather before until this
    // unit's parameters have been allocated.
    free(previous->output);
  }
  const OpId copied_out = ops_.add(CopyOut{s.gather_output, s.unsharded}, Stream::compute, unit);
  if (during == During::forward) {
    held_ = Held{.output = s.gather_output, .copied_out = copied_out};
  } else {
    gather_waits_for(copied_out);
    free(s.gather_output);
  }
}

void Fsdp2::unshard_locally(UnitId unit) {
  const FsdpUnit& u = unit_at(unit);
  State& s = state(unit);
  s.unsharded = allocate(buffer(BufferKind::unsharded, unit, u.padded_numel));
  ops_.add(Cast{s.shard, s.unsharded}, Stream::compute, unit);
}

void Fsdp2::reshard(UnitId unit) {
  State& s = state(unit);
  if (s.unsharded.valid()) {
    free(std::exchange(s.unsharded, {}));
  }
}

/// PyTorch makes both gather streams wait; a gather waits for its own copy-in anyway.
void Fsdp2::gather_waits_for(OpId op) { ops_.wait(Stream::all_gather_copy_in, op); }

void Fsdp2::compute(const TraceStep& step, During during) {
  const bool forward = during == During::forward;
  const State& s = state(step.unit);
  if (!forward && !s.in_backward) {
    return;  // no gradient reaches this unit
  }
  std::vector<BufferId> gradients;
  if (!forward && !step.gradients.empty()) {
    gradients = {gradients_of(step)};
  }
  const std::vector<Gemm>& gemms = forward ? step.forward : step.backward;
  if (!gemms.empty() || !gradients.empty()) {
    ops_.add(Compute{.gemms = gemms,
                     .dtype = unit_at(step.unit).param_dtype,
                     .parameters = s.unsharded,
                     .gradients = gradients},
             Stream::compute, step.unit);
  }
}

/// Where a kind of buffer lives and what it is made of.
Buffer Fsdp2::buffer(BufferKind kind, UnitId unit, std::int64_t numel,
                     std::vector<int> parameters) const {
  const FsdpUnit& u = unit_at(unit);
  Buffer out{.kind = kind,
             .unit = unit,
             .dtype = u.param_dtype,
             .numel = numel,
             .parameters = std::move(parameters)};
  switch (kind) {
    case BufferKind::shard:
    case BufferKind::sharded_grad:
      out.pool = Pool::resident;
      out.dtype = u.master_dtype;
      break;
    case BufferKind::cast_shard:
    case BufferKind::all_gather_output:
      out.pool = Pool::all_gather_copy_in;
      break;
    case BufferKind::unsharded:
    case BufferKind::unsharded_grad:
      out.pool = Pool::compute;
      break;
    case BufferKind::reduce_scatter_input:
      out.pool = Pool::compute;
      out.dtype = u.reduce_dtype;
      break;
    case BufferKind::reduce_scatter_output:
      out.pool = Pool::reduce_scatter;
      out.dtype = u.reduce_dtype;
      break;
  }
  return out;
}

BufferId Fsdp2::resident(Buffer buffer) {
  buffers_.push_back(std::move(buffer));
  return {static_cast<std::int32_t>(buffers_.size() - 1)};
}

BufferId Fsdp2::allocate(Buffer buffer) {
  const Stream stream = stream_of(buffer.pool);
  const UnitId unit = buffer.unit;
  const BufferId id = resident(std::move(buffer));
  ops_.add(Allocate{id}, stream, unit);
  return id;
}

void Fsdp2::free(BufferId buffer) {
  const Buffer& b = buffers_[buffer.index()];
  ops_.add(Free{buffer}, stream_of(b.pool), b.unit);
}

bool Fsdp2::collectives() const {
  return plan_.mesh.shard > 1 || policy_.version < local_copies_since;
}

}  // namespace fsdp
