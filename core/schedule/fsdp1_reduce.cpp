// Gradients of FSDP1's units: where they appear, how they become one flat gradient, and how that is
// reduced.
#include <utility>

#include "core/schedule/division.hpp"
#include "core/schedule/fsdp1.hpp"

namespace fsdp {

void Fsdp1::compute(const TraceStep& step) {
  if (!step.forward.empty()) {
    writer_.add(
        Compute{.gemms = step.forward,
                .dtype = unit_at(step.unit).param_dtype,
                .parameters = step.reads_parameters ? state(step.unit).unsharded : BufferId{},
                .gradients = {}},
        Stream::compute, step.unit);
  }
}

void Fsdp1::backward_compute(const TraceStep& step) {
  State& s = state(step.unit);
  if (!step.requires_grad) {
    return;
  }
  Compute work{.gemms = step.backward,
               .dtype = unit_at(step.unit).param_dtype,
               .parameters = step.reads_parameters ? s.unsharded : BufferId{},
               .gradients = {}};
  if (!step.gradients.empty()) {
    std::int64_t numel = 0;
    for (const int index : step.gradients) {
      numel += unit_at(step.unit).parameters[static_cast<std::size_t>(index)].numel;
    }
    s.grads.push_back(writer_.allocate(
        writer_.buffer(BufferKind::unsharded_grad, step.unit, numel, step.gradients)));
    s.gradients_due -= static_cast<int>(step.gradients.size());
    work.gradients = {s.grads.back()};
  }
  if (!work.gemms.empty() || !work.gradients.empty()) {
    writer_.add(std::move(work), Stream::compute, step.unit);
  }
}

/// Autograd puts the gradients of the views together, and adds them to those of an earlier
/// micro-batch that did not reduce.
void Fsdp1::concatenate(UnitId unit) {
  State& s = state(unit);
  const BufferId flat = writer_.allocate(writer_.buffer(BufferKind::flat_grad, unit));
  writer_.add(Concat{s.grads, flat}, Stream::compute, unit);
  for (const BufferId grad : std::exchange(s.grads, {})) {
    writer_.free(grad);
  }
  if (s.flat_grad.valid()) {
    writer_.add(Accumulate{flat, s.flat_grad}, Stream::compute, unit);
    writer_.free(flat);
  } else {
    s.flat_grad = flat;
  }
}

void Fsdp1::reduce(UnitId unit) {
  writer_.wait_stream(Stream::reduce_scatter, Stream::compute);
  const BufferId input = reduction_input(unit);
  if (shards()) {
    reduce_shards(unit, input);
  } else {
    reduce_whole(unit, input);
  }
}

/// The flat gradient in the reduce dtype.
BufferId Fsdp1::reduction_input(UnitId unit) {
  constexpr Stream stream = Stream::reduce_scatter;
  State& s = state(unit);
  const FsdpUnit& u = unit_at(unit);
  const BufferId flat = std::exchange(s.flat_grad, {});
  if (u.reduce_dtype == u.param_dtype) {
    return flat;
  }
  const BufferId input = writer_.allocate(writer_.buffer(BufferKind::reduce_scatter_input, unit));
  writer_.add(Cast{flat, input}, stream, unit);
  writer_.free(flat, stream);
  return input;
}

void Fsdp1::reduce_shards(UnitId unit, BufferId input) {
  State& s = state(unit);
  const FsdpUnit& u = unit_at(unit);
  Stream stream = Stream::reduce_scatter;
  const Divisors factors = divisors(plan_.mesh.world());
  const bool final =
      !s.sharded_grad.valid() && u.reduce_dtype == u.master_dtype && !policy_.cpu_offload;
  if (final) {
    s.sharded_grad = writer_.persistent(writer_.buffer(BufferKind::sharded_grad, unit));
  }
  writer_.divide(input, factors.before, stream, unit);
  const BufferId output =
      final ? s.sharded_grad
            : writer_.allocate(writer_.buffer(BufferKind::reduce_scatter_output, unit));
  writer_.add(ReduceScatter{.group = {GroupKind::shard, plan_.mesh.shard},
                            .from = input,
                            .to = output,
                            .send = u.padded_numel,
                            .recv = u.shard_numel,
                            .dtype = u.reduce_dtype,
                            .op = ReduceOp::sum,
                            .factor = 1},
              stream, unit);
  writer_.free(input, stream);
  if (is_hybrid()) {
    writer_.wait_stream(Stream::all_reduce, stream);
    stream = Stream::all_reduce;
    writer_.add(AllReduce{.group = {GroupKind::replicate, plan_.mesh.replicate},
                          .buffer = output,
                          .numel = u.shard_numel,
                          .dtype = u.reduce_dtype,
                          .op = ReduceOp::sum,
                          .factor = 1},
                stream, unit);
  }
  writer_.divide(output, factors.after, stream, unit);
  accumulate(unit, output, stream);
}

/// NO_SHARD, which FSDP1 falls back to on a group of one: the gradient is all-reduced in place.
void Fsdp1::reduce_whole(UnitId unit, BufferId input) {
  constexpr Stream stream = Stream::reduce_scatter;
  const FsdpUnit& u = unit_at(unit);
  writer_.add(AllReduce{.group = {GroupKind::shard, plan_.mesh.shard},
                        .buffer = input,
                        .numel = u.padded_numel,
                        .dtype = u.reduce_dtype,
                        .op = ReduceOp::sum,
                        .factor = 1},
              stream, unit);
  accumulate(unit, input, stream);
}

/// What was reduced becomes the sharded gradient, or is added to it.
void Fsdp1::accumulate(UnitId unit, BufferId output, Stream stream) {
  State& s = state(unit);
  if (output == s.sharded_grad) {
    return;
  }
  const bool first = !s.sharded_grad.valid();
  if (first) {
    s.sharded_grad = writer_.persistent(writer_.buffer(BufferKind::sharded_grad, unit));
  }
  if (policy_.cpu_offload) {
    writer_.add(DeviceToHost{output, s.sharded_grad}, stream, unit);
  } else if (first) {
    writer_.add(Cast{output, s.sharded_grad}, stream, unit);
  } else {
    writer_.add(Accumulate{output, s.sharded_grad}, stream, unit);
  }
  writer_.free(output, stream);
}

/// Gradients that a step without reduction leaves behind, and parameters that stayed unsharded.
void Fsdp1::drop_leftovers() {
  for (State& s : states_) {
    for (BufferId* buffer : {&s.flat_grad, &s.cast}) {
      if (buffer->valid()) {
        writer_.free(std::exchange(*buffer, {}), Stream::compute);
      }
    }
    for (const BufferId grad : std::exchange(s.grads, {})) {
      writer_.free(grad, Stream::compute);
    }
    if (s.unsharded.valid() && shards()) {
      left_unsharded_.push_back({static_cast<std::int32_t>(&s - states_.data())});
      if (!is_persistent(writer_[s.unsharded].pool)) {
        writer_.free(std::exchange(s.unsharded, {}), Stream::compute);
      }
    }
  }
}

}  // namespace fsdp
