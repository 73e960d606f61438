// Gradients of FSDP2's units: where they appear, how they are packed, reduced and let go.
#include <algorithm>
#include <utility>

#include "core/model/releases.hpp"
#include "core/schedule/division.hpp"
#include "core/schedule/fsdp2.hpp"

namespace fsdp {
namespace {

bool overflows(DType dtype) { return dtype != DType::f32 && dtype != DType::bf16; }

}  // namespace

/// The gradients that appear in this step: added to what an earlier micro-batch left in the same
/// dtype, else in a buffer of their own.
void Fsdp2::collect_gradients(const TraceStep& step, Compute& compute) {
  if (step.gradients.empty()) {
    return;
  }
  State& s = state(step.unit);
  for (const BufferId grad : s.grads) {
    if (writer_[grad].parameters == step.gradients) {
      compute.adds_to = {grad};
      return;
    }
  }
  std::int64_t numel = 0;
  for (const int index : step.gradients) {
    numel += unit_at(step.unit).parameters[static_cast<std::size_t>(index)].numel;
  }
  const BufferId grads = writer_.allocate(
      writer_.buffer(BufferKind::unsharded_grad, step.unit, numel, step.gradients));
  s.grads.push_back(grads);
  compute.gradients = {grads};
}

/// Gradients of earlier micro-batches in the reduce dtype take those of this one.
void Fsdp2::add_to_accumulated(UnitId unit) {
  State& s = state(unit);
  if (s.accumulated.empty()) {
    return;
  }
  for (const BufferId grad : std::exchange(s.grads, {})) {
    const auto same = [&](BufferId other) {
      return writer_[other].parameters == writer_[grad].parameters;
    };
    const auto to = std::find_if(s.accumulated.begin(), s.accumulated.end(), same);
    if (to == s.accumulated.end()) {
      s.grads.push_back(grad);
      continue;
    }
    writer_.add(Accumulate{grad, *to}, Stream::compute, unit);
    writer_.free(grad);
  }
}

/// Without reduction, gradients are kept unsharded in the reduce dtype.
void Fsdp2::accumulate_in_reduce_dtype(UnitId unit) {
  State& s = state(unit);
  const DType dtype = unit_at(unit).reduce_dtype;
  if (dtype == unit_at(unit).param_dtype) {
    return;  // they stay where autograd put them, which adds the next ones
  }
  for (const BufferId grad : std::exchange(s.grads, {})) {
    Buffer widened = writer_[grad];
    widened.dtype = dtype;
    const BufferId to = writer_.allocate(std::move(widened));
    writer_.add(Cast{grad, to}, Stream::compute, unit);
    writer_.free(grad);
    s.accumulated.push_back(to);
  }
}

void Fsdp2::reduce(UnitId unit) {
  State& s = state(unit);
  if (s.reduced.valid()) {  // of the micro-batch before
    writer_.wait(Stream::compute, std::exchange(s.reduced, {}));
  }
  free_all_reduced(unit);
  const Division division = this->division(unit_at(unit));
  Reduction reduction = pack(unit);
  reduce_scatter(unit, reduction, division);
  Stream stream = Stream::reduce_scatter;
  in_flight_.push_back({.input = reduction.input, .reduced = *writer_.newest(stream)});
  if (hybrid() && !micro_.all_reduces) {
    if (s.partial.valid()) {
      writer_.add(Accumulate{reduction.output, s.partial}, stream, unit);
      writer_.free(reduction.output);
    } else {
      s.partial = reduction.output;
    }
  } else {
    if (hybrid()) {
      if (s.partial.valid()) {
        writer_.add(Accumulate{s.partial, reduction.output}, stream, unit);
        writer_.free(std::exchange(s.partial, {}));
      }
      stream = Stream::all_reduce;
      all_reduce(unit, reduction, division);
    }
    writer_.divide(reduction.output, division.after, stream, unit);
    view_out(unit, reduction, stream);
  }
  s.reduced = *writer_.newest(stream);
  last_reduced_[stream] = s.reduced;
}

/// Gradients to the rank-major input of the reduce-scatter.
Fsdp2::Reduction Fsdp2::pack(UnitId unit) {
  State& s = state(unit);
  const FsdpUnit& u = unit_at(unit);
  std::vector<BufferId> grads = std::exchange(s.accumulated, {});
  const std::vector<BufferId> fresh = std::exchange(s.grads, {});
  grads.insert(grads.end(), fresh.begin(), fresh.end());
  Reduction out;
  for (const BufferId grad : grads) {
    const std::vector<int>& parameters = writer_[grad].parameters;
    out.parameters.insert(out.parameters.end(), parameters.begin(), parameters.end());
  }
  std::sort(out.parameters.begin(), out.parameters.end());
  std::int64_t elsewhere = 0;
  for (const int index : out.parameters) {
    const UnitParameter& parameter = u.parameters[static_cast<std::size_t>(index)];
    out.row += parameter.shard_numel;
    elsewhere += parameter.shard_dim > 0 && plan_.mesh.shard > 1 ? parameter.numel : 0;
  }
  if (elsewhere > 0) {
    Buffer chunks = writer_.buffer(BufferKind::chunks, unit, elsewhere);
    chunks.dtype = writer_[grads.front()].dtype;
    const BufferId to = writer_.allocate(std::move(chunks));
    writer_.add(Concat{grads, to}, Stream::compute, unit);
    grads.push_back(to);
  }
  out.input = writer_.allocate(writer_.buffer(BufferKind::reduce_scatter_input, unit,
                                              out.row * plan_.mesh.shard, out.parameters));
  writer_.add(ChunkCat{grads, out.input}, Stream::compute, unit);
  for (const BufferId grad : grads) {
    writer_.free(grad);
  }
  return out;
}

/// The sharded gradient itself where nothing has to follow but a view of it.
BufferId Fsdp2::output_of(UnitId unit, const Reduction& reduction) {
  State& s = state(unit);
  const bool final = !s.sharded_grad.valid() && !policy_.cpu_offload &&
                     unit_at(unit).reduce_dtype == unit_at(unit).master_dtype &&
                     (!hybrid() || micro_.all_reduces);
  if (final) {
    return s.sharded_grad = sharded_gradient(unit, reduction);
  }
  return writer_.allocate(
      writer_.buffer(BufferKind::reduce_scatter_output, unit, reduction.row, reduction.parameters));
}

BufferId Fsdp2::sharded_gradient(UnitId unit, const Reduction& reduction) {
  return writer_.persistent(
      writer_.buffer(BufferKind::sharded_grad, unit, reduction.row, reduction.parameters));
}

Fsdp2::Division Fsdp2::division(const FsdpUnit& unit) const {
  const DeviceMesh& mesh = plan_.mesh;
  const std::optional<double>& factor = policy_.gradient_divide_factor;
  if (overflows(unit.reduce_dtype)) {
    // Half precision sums could overflow: PyTorch divides with kernels of its own around plain
    // sums.
    const auto [before, after] = divisors(factor.value_or(mesh.world()));
    return {.before = before, .after = after};
  }
  if (policy_.force_sum_reduction) {
    return {.after = factor.value_or(mesh.world())};
  }
  if (!factor) {
    const bool alone = mesh.world() == 1 && !collectives();
    const ReduceOp op = alone ? ReduceOp::sum : ReduceOp::avg;
    return {.scatter = op, .all_reduce = op, .factor = 1.0 / mesh.world()};
  }
  if (policy_.version < since::average_by_shard_group) {
    const bool whole = *factor == static_cast<double>(mesh.world());
    return whole ? Division{.scatter = ReduceOp::avg, .all_reduce = ReduceOp::avg}
                 : Division{.scatter = ReduceOp::premul_sum, .factor = 1.0 / *factor};
  }
  const bool average = *factor == static_cast<double>(mesh.shard);
  return {.scatter = average ? ReduceOp::avg : ReduceOp::premul_sum, .factor = 1.0 / *factor};
}

void Fsdp2::reduce_scatter(UnitId unit, Reduction& reduction, const Division& division) {
  constexpr Stream stream = Stream::reduce_scatter;
  const FsdpUnit& u = unit_at(unit);
  const int ranks = plan_.mesh.shard;
  writer_.wait_stream(stream, Stream::compute);
  reduction.output = output_of(unit, reduction);
  writer_.divide(reduction.input, division.before, stream, unit);
  if (!collectives()) {
    writer_.add(Cast{reduction.input, reduction.output}, stream, unit);
    return;
  }
  const GroupKind kind =
      policy_.separate_reduce_scatter_group ? GroupKind::reduce_scatter : GroupKind::shard;
  writer_.add(ReduceScatter{.group = {kind, ranks},
                            .from = reduction.input,
                            .to = reduction.output,
                            .send = reduction.row * ranks,
                            .recv = reduction.row,
                            .dtype = u.reduce_dtype,
                            .op = division.scatter,
                            .factor = division.factor},
              stream, unit);
}

/// In place on the reduce-scatter's output, which PyTorch keeps until the end of backward.
void Fsdp2::all_reduce(UnitId unit, const Reduction& reduction, const Division& division) {
  writer_.wait_stream(Stream::all_reduce, Stream::reduce_scatter);
  writer_.add(AllReduce{.group = {GroupKind::replicate, plan_.mesh.replicate},
                        .buffer = reduction.output,
                        .numel = reduction.row,
                        .dtype = unit_at(unit).reduce_dtype,
                        .op = division.all_reduce,
                        .factor = 1.0 / plan_.mesh.replicate},
              Stream::all_reduce, unit);
}

/// What was summed becomes the sharded gradient, or is added to it.
void Fsdp2::view_out(UnitId unit, const Reduction& reduction, Stream stream) {
  State& s = state(unit);
  BufferId source = reduction.output;
  if (source == s.sharded_grad) {
    return;
  }
  const bool first = !s.sharded_grad.valid();
  if (first) {
    s.sharded_grad = sharded_gradient(unit, reduction);
  }
  if (unit_at(unit).reduce_dtype != unit_at(unit).master_dtype) {
    Buffer cast = writer_[s.sharded_grad];
    cast.kind = BufferKind::reduce_scatter_output;
    cast.pool = stream == Stream::all_reduce ? Pool::all_reduce : Pool::reduce_scatter;
    const bool final = first && !policy_.cpu_offload;
    const BufferId to = final ? s.sharded_grad : writer_.allocate(std::move(cast));
    writer_.add(Cast{source, to}, stream, unit);
    if (stream == Stream::all_reduce) {
      s.all_reduced = source;
    } else {
      writer_.free(source);
    }
    source = to;
  }
  if (policy_.cpu_offload) {
    offload_gradient(unit, source, first ? Addition::none : Addition::on_host);
  } else if (!first) {
    writer_.add(Accumulate{source, s.sharded_grad}, stream, unit);
  }
  if (source != s.sharded_grad) {
    release_output(unit, source, stream);
  }
}

/// The all-reduced buffer belongs to the reduce-scatter's pool, whose stream has not waited for the
/// all-reduce: PyTorch keeps it until the compute stream has.
void Fsdp2::release_output(UnitId unit, BufferId output, Stream stream) {
  if (stream_of(writer_[output].pool) == stream) {
    writer_.free(output);
  } else {
    state(unit).all_reduced = output;
  }
}

void Fsdp2::free_all_reduced(UnitId unit) {
  if (const BufferId kept = std::exchange(state(unit).all_reduced, {}); kept.valid()) {
    writer_.free(kept, Stream::compute);
  }
}

/// To pinned memory; the first copy overlaps and is waited for at the end of backward, a later one
/// is waited for at once, because the host adds it.
void Fsdp2::offload_gradient(UnitId unit, BufferId from, Addition addition) {
  State& s = state(unit);
  const Stream stream = hybrid() ? Stream::all_reduce : Stream::reduce_scatter;
  if (addition == Addition::none) {
    offloaded_.push_back(writer_.add(DeviceToHost{from, s.sharded_grad}, stream, unit));
    return;
  }
  Buffer staging = writer_[s.sharded_grad];
  const BufferId to = writer_.persistent(std::move(staging));
  const OpId copied = writer_.add(DeviceToHost{from, to}, stream, unit);
  writer_.add(HostWait{copied}, Stream::host, unit);
  writer_.add(Accumulate{to, s.sharded_grad}, Stream::host, unit);
}

void Fsdp2::release_inputs() {
  while (static_cast<int>(in_flight_.size()) >= policy_.reduce_scatter_buffers) {
    release_oldest_input();
  }
}

void Fsdp2::release_oldest_input() {
  const InFlight oldest = in_flight_.front();
  in_flight_.pop_front();
  writer_.wait(Stream::compute, oldest.reduced);
  writer_.free(oldest.input);
}

}  // namespace fsdp
