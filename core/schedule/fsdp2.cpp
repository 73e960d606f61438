#include "core/schedule/fsdp2.hpp"

#include <algorithm>
#include <utility>

#include "core/model/releases.hpp"
#include "core/schedule/prefetch_lists.hpp"

namespace fsdp {
Fsdp2::Fsdp2(const WrapPlan& plan)
    : plan_(plan),
      policy_(plan.policy),
      writer_(plan),
      states_(plan.units.size()),
      forward_lists_(forward_prefetch_lists(plan, policy_.forward_prefetch)),
      backward_lists_(backward_prefetch_lists(plan, policy_.backward_prefetch)) {}

Schedule Fsdp2::build() {
  for (std::size_t i = 0; i < plan_.units.size(); ++i) {
    const UnitId id{static_cast<std::int32_t>(i)};
    states_[i].shard = writer_.persistent(writer_.buffer(BufferKind::shard, id));
  }
  const Batch& batch = plan_.batch;
  for (int index = 0; index < batch.accumulate; ++index) {
    const bool last = index + 1 == batch.accumulate;
    micro_ = {.last = last,
              .reduces = last || batch.sync != GradientSync::last,
              .all_reduces = last || batch.sync != GradientSync::reduce_scatter,
              .reshards = last || batch.reshard_after_backward};
    writer_.begin(Phase::forward, index);
    forward();
    writer_.begin(Phase::backward, index);
    backward();
  }
  return writer_.finish();
}

void Fsdp2::forward() {
  root_pre_forward();
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
      case TraceStep::Kind::checkpoint_begin:
      case TraceStep::Kind::checkpoint_end:
        break;
    }
  }
  root_post_forward();
}

void Fsdp2::backward() {
  std::optional<TraceSteps::const_iterator>
      repeated;  // end of a checkpointed block not yet repeated
  for (auto step = plan_.trace.rbegin(); step != plan_.trace.rend(); ++step) {
    switch (step->kind) {
      case TraceStep::Kind::exit:
        step = leave_backwards(step, [this](UnitId unit) { pre_backward(unit); });
        break;
      case TraceStep::Kind::compute:
        if (repeated && step->requires_grad) {
          // The first gradient in a block that needs what forward did not keep repeats the block.
          recompute(*std::exchange(repeated, {}));
        }
        compute(*step, During::backward);
        break;
      case TraceStep::Kind::checkpoint_end:
        repeated = step.base() - 1;
        break;
      case TraceStep::Kind::checkpoint_begin:
        repeated.reset();
        break;
      case TraceStep::Kind::enter:
        if (step->requires_grad) {
          post_backward(step->unit);
        }
        break;
    }
  }
  root_post_backward();
}

/// The forward of the checkpointed block that ends at `end`, once more. Units inside it are
/// gathered as in forward, unless they are in backward already, and stay unsharded.
void Fsdp2::recompute(TraceSteps::const_iterator end) {
  for (auto step = checkpoint_begin(end); step != end; ++step) {
    if (step->kind == TraceStep::Kind::enter) {
      recompute_enter(step->unit);
    } else if (step->kind == TraceStep::Kind::exit) {
      recompute_exit(step->unit);
    } else if (step->kind == TraceStep::Kind::compute) {
      run(step->unit,
          {.gemms = step->recompute,
           .dtype = unit_at(step->unit).param_dtype,
           .parameters = step->reads_parameters ? state(step->unit).unsharded : BufferId{},
           .gradients = {}});
    }
  }
}

void Fsdp2::recompute_enter(UnitId unit) {
  State& s = state(unit);
  if (s.training == Training::pre_backward) {
    unshard(unit, During::backward);
    wait_for_unshard(unit, During::backward);
    return;
  }
  s.training = Training::forward;
  if (!recompute_root_.valid()) {
    // PyTorch takes the first unit for the root of another forward.
    recompute_root_ = unit;
    root_pre_forward();
  }
  pre_forward(unit);
}

void Fsdp2::recompute_exit(UnitId unit) {
  State& s = state(unit);
  if (s.training == Training::pre_backward) {
    return;
  }
  s.training = Training::idle;
  if (recompute_root_ == unit) {
    recompute_root_ = {};
    root_post_forward();
  }
}

/// Gathers wait for the optimizer, and for the micro-batch before. (The gather stream is made to
/// wait too; it waits for its own copy-in anyway.)
void Fsdp2::root_pre_forward() { writer_.wait_stream(Stream::all_gather_copy_in, Stream::compute); }

void Fsdp2::pre_forward(UnitId unit) {
  unshard(unit, During::forward);
  wait_for_unshard(unit, During::forward);
  for (const UnitId next : forward_lists_[unit.index()]) {
    unshard(next, During::forward);
  }
}

void Fsdp2::post_forward(UnitId unit) {
  const Reshard reshard_to = unit_at(unit).reshard_after_forward;
  if (reshard_to == Reshard::free()) {
    reshard(unit);
  } else if (reshard_to.to > 1) {
    reshard_to_submesh(unit);
  }
  state(unit).runs.push_back(static_cast<int>(post_forward_order_.size()));
  post_forward_order_.push_back(unit);
}

void Fsdp2::root_post_forward() {
  if (held_) {
    writer_.wait(Stream::all_gather_copy_in, held_->copied_out);
    writer_.free(held_->output);
    held_.reset();
  }
}

void Fsdp2::pre_backward(UnitId unit) {
  State& s = state(unit);
  if (s.training == Training::pre_backward) {
    return;  // by another output of the same forward
  }
  s.training = Training::pre_backward;
  unshard(unit, During::backward);
  wait_for_unshard(unit, During::backward);
  prefetch_backward(unit);
}

/// Explicit lists replace the default: the unit before this one in post-forward order.
void Fsdp2::prefetch_backward(UnitId unit) {
  if (!backward_lists_[unit.index()].empty()) {
    for (const UnitId target : backward_lists_[unit.index()]) {
      unshard(target, During::backward);
    }
    return;
  }
  if (state(unit).runs.empty()) {
    return;
  }
  const int run = state(unit).runs.back();
  state(unit).runs.pop_back();
  if (run > 0) {
    unshard(post_forward_order_[static_cast<std::size_t>(run - 1)], During::backward);
  }
}

void Fsdp2::post_backward(UnitId unit) {
  State& s = state(unit);
  s.training = Training::post_backward;
  add_to_accumulated(unit);
  if (micro_.reshards) {
    reshard(unit);
  }
  if (!micro_.reduces) {
    accumulate_in_reduce_dtype(unit);
    return;
  }
  const bool reduces = !s.grads.empty() || !s.accumulated.empty();
  if (reduces || policy_.version >= since::wait_without_gradients) {
    release_inputs();
  }
  if (reduces) {
    reduce(unit);
  }
}

std::vector<UnitId> Fsdp2::module_order() const {
  std::vector<UnitId> order;
  for (std::size_t i = 0; i < plan_.units.size(); ++i) {
    order.push_back({static_cast<std::int32_t>(i)});
  }
  std::stable_sort(order.begin(), order.end(), [&](UnitId a, UnitId b) {
    return unit_at(a).module_order < unit_at(b).module_order;
  });
  return order;
}

/// The end of a micro-batch's backward: units whose inputs needed no gradient are reduced here,
/// root first. Only the last micro-batch waits for reductions and forgets the order of forwards.
void Fsdp2::root_post_backward() {
  const std::vector<UnitId> order = module_order();
  const bool apart = policy_.version >= since::finalize_apart;
  for (const UnitId unit : order) {
    if (state(unit).training != Training::post_backward) {
      post_backward(unit);
    }
    state(unit).training = Training::idle;
    if (micro_.last && !apart) {
      finalize_backward(unit);
    }
  }
  for (const UnitId unit : order) {
    if (micro_.last && apart) {
      finalize_backward(unit);
    }
  }
  if (!micro_.last) {
    return;
  }
  while (!in_flight_.empty()) {
    release_oldest_input();
  }
  // A checkpointed block that holds but a part of a unit's modules enters the unit and never leaves
  // it when it is repeated.
  recompute_root_ = {};
  root_post_forward();
  for (State& s : states_) {  // gradients that a step without any reduction leaves behind
    for (auto* grads : {&s.grads, &s.accumulated}) {
      for (const BufferId grad : std::exchange(*grads, {})) {
        writer_.free(grad);
      }
    }
  }
}

void Fsdp2::finalize_backward(UnitId unit) {
  State& s = state(unit);
  if (policy_.version >= since::wait_by_stream) {
    for (const auto& [stream, op] : std::exchange(last_reduced_, {})) {
      writer_.wait(Stream::compute, op);
    }
  } else if (s.reduced.valid()) {
    writer_.wait(Stream::compute, s.reduced);
  }
  free_all_reduced(unit);
  for (const OpId op : std::exchange(offloaded_, {})) {
    writer_.add(HostWait{op}, Stream::host, unit);
  }
  if (s.pending && collectives()) {  // a prefetch of a unit that backward never reached
    writer_.wait(Stream::compute, s.gathered);
    writer_.free(s.gather_output, Stream::compute);
  }
  if (s.pending && s.resharded.valid()) {
    writer_.free(std::exchange(s.resharded, {}));
  }
  s.pending = false;
}

void Fsdp2::compute(const TraceStep& step, During during) {
  const bool forward = during == During::forward;
  const State& s = state(step.unit);
  if (!forward && !step.requires_grad) {
    return;
  }
  Compute work{.gemms = forward ? step.forward : step.backward,
               .dtype = unit_at(step.unit).param_dtype,
               .parameters = step.reads_parameters ? s.unsharded : BufferId{},
               .gradients = {}};
  if (!forward) {
    collect_gradients(step, work);
  }
  run(step.unit, std::move(work));
}

void Fsdp2::run(UnitId unit, Compute work) {
  if (!work.gemms.empty() || !work.gradients.empty() || !work.adds_to.empty()) {
    writer_.add(std::move(work), Stream::compute, unit);
  }
}

}  // namespace fsdp
