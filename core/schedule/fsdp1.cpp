#include "core/schedule/fsdp1.hpp"

#include <algorithm>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

bool is_trainable(const FsdpUnit& unit) {
  return std::any_of(unit.parameters.begin(), unit.parameters.end(),
                     [](const UnitParameter& p) { return p.trainable; });
}

}  // namespace

Fsdp1::Fsdp1(const WrapPlan& plan, Carried carried)
    : plan_(plan),
      policy_(plan.policy),
      writer_(plan),
      states_(plan.units.size()),
      forward_order_(std::move(carried.forward_order)),
      first_forward_(forward_order_.empty()) {
  for (const UnitId unit : carried.frees) {
    free_events_.push_back({.unit = unit, .freed = {}});
  }
  for (const UnitId unit : carried.unsharded) {
    Buffer kept = writer_.buffer(BufferKind::unsharded, unit);
    kept.pool = Pool::resident;
    state(unit).unsharded = writer_.persistent(std::move(kept));
  }
}

Schedule Fsdp1::build() {
  for (std::size_t i = 0; i < plan_.units.size(); ++i) {
    const UnitId id{static_cast<std::int32_t>(i)};
    states_[i].shard = writer_.persistent(writer_.buffer(BufferKind::shard, id));
  }
  for (int index = 0; index < plan_.batch.accumulate; ++index) {
    last_micro_ = index + 1 == plan_.batch.accumulate;
    reduces_ = last_micro_ || plan_.batch.sync != GradientSync::last;
    writer_.begin(Phase::forward, index);
    forward();
    writer_.begin(Phase::backward, index);
    backward();
  }
  return writer_.finish();
}

Fsdp1::Carried Fsdp1::carried() const {
  Carried out{.frees = {}, .forward_order = forward_order_, .unsharded = left_unsharded_};
  for (const FreeEvent& event : free_events_) {
    out.frees.push_back(event.unit);
  }
  return out;
}

void Fsdp1::forward() {
  root_pre_forward();
  for (std::size_t i = 0; i < plan_.trace.size(); ++i) {
    const TraceStep& step = plan_.trace[i];
    step_ = i;
    switch (step.kind) {
      case TraceStep::Kind::enter:
        pre_forward(step.unit);
        break;
      case TraceStep::Kind::compute:
        compute(step);
        break;
      case TraceStep::Kind::exit:
        post_forward(step.unit, step);
        break;
      case TraceStep::Kind::checkpoint_begin:
      case TraceStep::Kind::checkpoint_end:
        break;
    }
  }
  first_forward_ = false;
  step_.reset();
}

void Fsdp1::root_pre_forward() {
  for (State& s : states_) {
    if (policy_.fsdp1.forward_prefetch) {
      s.needs_forward_unshard = true;
      s.prefetched = false;
    }
    s.gradients_due = 0;
    s.views_made = false;
  }
  for (const TraceStep& step : plan_.trace) {
    if (step.kind == TraceStep::Kind::compute) {
      state(step.unit).gradients_due += static_cast<int>(step.gradients.size());
    }
  }
  writer_.wait_stream(Stream::all_gather, Stream::compute);
  writer_.wait_stream(Stream::all_gather_copy_in, Stream::compute);
}

void Fsdp1::pre_forward(UnitId unit) {
  State& s = state(unit);
  if (s.training == Training::backward_pre) {
    return;  // a checkpointed block around the unit is repeated
  }
  if (first_forward_ &&
      std::find(forward_order_.begin(), forward_order_.end(), unit) == forward_order_.end()) {
    forward_order_.push_back(unit);
  }
  s.training = Training::forward;
  if (!s.prefetched) {
    unshard(unit);
  }
  s.needs_forward_unshard = false;
  writer_.wait_stream(Stream::compute, Stream::all_gather);
  prefetch(unit);
}

void Fsdp1::post_forward(UnitId unit, const TraceStep& step) {
  State& s = state(unit);
  if (s.training == Training::backward_pre) {
    return;
  }
  // PyTorch takes the first place for "not recorded yet".
  if (s.post_forward_index.value_or(0) == 0) {
    s.post_forward_index = static_cast<int>(post_forward_order_.size());
  }
  post_forward_order_.push_back(unit);
  reshard(unit, unit_at(unit).reshard_after_forward == Reshard::free() && shards());
  s.needs_backward_unshard = step.requires_grad;
  s.ran_pre_backward = false;
  s.training = Training::idle;
}

void Fsdp1::backward() {
  std::optional<TraceSteps::const_iterator>
      repeated;                  // end of a checkpointed block not yet repeated
  std::optional<UnitId> frozen;  // a unit to be freed behind the next hook
  for (auto step = plan_.trace.rbegin(); step != plan_.trace.rend(); ++step) {
    switch (step->kind) {
      case TraceStep::Kind::exit:
        step = leave_backwards(step, [this](UnitId unit) { pre_backward(unit); });
        if (frozen) {
          post_backward_reshard(*std::exchange(frozen, {}));
        }
        break;
      case TraceStep::Kind::compute:
        if (repeated && step->requires_grad) {
          recompute(*std::exchange(repeated, {}));
        }
        backward_compute(*step);
        break;
      case TraceStep::Kind::enter:
        post_backward_at(static_cast<std::size_t>(plan_.trace.rend() - step) - 1);
        // Frozen units are freed once the gradient of their inputs is there; where that is the
        // output of the unit before, its own hook was hung on it first.
        if (step->requires_grad && state(step->unit).in_backward &&
            !is_trainable(unit_at(step->unit))) {
          frozen = step->unit;
          if (std::next(step) == plan_.trace.rend() ||
              std::next(step)->kind != TraceStep::Kind::exit) {
            post_backward_reshard(*std::exchange(frozen, {}));
          }
        }
        break;
      case TraceStep::Kind::checkpoint_end:
        repeated = step.base() - 1;
        break;
      case TraceStep::Kind::checkpoint_begin:
        repeated.reset();
        break;
    }
  }
  root_post_backward();
}

/// The forward of the checkpointed block that ends at `end`, once more: as far as FSDP1 can tell a
/// forward like any other, for all units but those already in backward.
void Fsdp1::recompute(TraceSteps::const_iterator end) {
  for (auto step = checkpoint_begin(end); step != end; ++step) {
    if (step->kind == TraceStep::Kind::enter) {
      pre_forward(step->unit);
    } else if (step->kind == TraceStep::Kind::exit) {
      post_forward(step->unit, *step);
    } else if (step->kind == TraceStep::Kind::compute && !step->recompute.empty()) {
      writer_.add(
          Compute{.gemms = step->recompute,
                  .dtype = unit_at(step->unit).param_dtype,
                  .parameters = step->reads_parameters ? state(step->unit).unsharded : BufferId{},
                  .gradients = {}},
          Stream::compute, step->unit);
    }
  }
}

void Fsdp1::pre_backward(UnitId unit) {
  State& s = state(unit);
  if (s.ran_pre_backward) {
    return;
  }
  s.in_backward = true;
  s.training = Training::backward_pre;
  if (s.needs_backward_unshard) {
    if (!s.prefetched) {
      unshard(unit);
    }
    writer_.wait_stream(Stream::compute, Stream::all_gather);
  }
  s.needs_backward_unshard = false;
  prefetch(unit);
  s.ran_pre_backward = true;
}

void Fsdp1::post_backward_reshard(UnitId unit) {
  state(unit).training = Training::backward_post;
  reshard(unit, frees_in_backward());
  prefetch(unit);
}

/// Autograd runs what is ready in the reverse order of its making: the node that puts the gradients
/// of a unit together was made when the unit was unsharded, with forward prefetch before the ops of
/// the unit in front.
void Fsdp1::post_backward_at(std::size_t step) {
  for (std::size_t i = states_.size(); i-- > 0;) {
    const State& s = states_[i];
    if (s.views_made && s.views_made_at == step && s.gradients_due == 0 && !s.grads.empty()) {
      post_backward({static_cast<std::int32_t>(i)});
    }
  }
}

void Fsdp1::post_backward(UnitId unit) {
  concatenate(unit);
  post_backward_reshard(unit);
  if (reduces_) {
    reduce(unit);
  }
}

void Fsdp1::root_post_backward() {
  if (reduces_) {
    writer_.wait_stream(Stream::compute, Stream::reduce_scatter);
    if (is_hybrid()) {
      writer_.wait_stream(Stream::compute, Stream::all_reduce);
    }
  }
  post_forward_order_.clear();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& s = states_[i];
    const UnitId unit{static_cast<std::int32_t>(i)};
    if (s.points_to_unsharded) {  // backward never came to free it
      reshard(unit, frees_in_backward());
    }
    s.ran_pre_backward = false;
    s.needs_backward_unshard = false;
    s.post_forward_index.reset();
    s.training = Training::idle;
    s.in_backward = false;
    s.prefetched = false;
  }
  if (last_micro_) {
    drop_leftovers();
  }
}

/// Without synchronisation, strategies that keep parameters after forward keep them after backward
/// too.
bool Fsdp1::frees_in_backward() const { return shards() && (reduces_ || frees_after_forward()); }

bool Fsdp1::is_hybrid() const {
  return policy_.fsdp1.sharding == ShardingStrategy::hybrid_shard ||
         policy_.fsdp1.sharding == ShardingStrategy::hybrid_shard_zero2;
}

bool Fsdp1::frees_after_forward() const {
  return policy_.fsdp1.sharding == ShardingStrategy::full_shard ||
         policy_.fsdp1.sharding == ShardingStrategy::hybrid_shard;
}

bool Fsdp1::casts(UnitId unit) const {
  return policy_.param_dtype.has_value() && unit_at(unit).param_dtype != unit_at(unit).master_dtype;
}

Schedule build_fsdp1(const WrapPlan& plan) {
  constexpr int settled = 3;
  Fsdp1::Carried carried;
  for (int step = 1; step < settled; ++step) {
    Fsdp1 builder(plan, std::move(carried));
    builder.build();
    carried = builder.carried();
  }
  return Fsdp1(plan, std::move(carried)).build();
}

}  // namespace fsdp
