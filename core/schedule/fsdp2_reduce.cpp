// Gradients of FSDP2's units: where they appear, how they are packed, reduced and let go.
#include <algorithm>
#include <utility>

#include "core/schedule/fsdp2.hpp"

namespace fsdp {

/// A buffer for the gradients that appear in this step.
BufferId Fsdp2::gradients_of(const TraceStep& step) {
  const FsdpUnit& u = unit_at(step.unit);
  std::int64_t numel = 0;
  for (const int index : step.gradients) {
    numel += u.parameters[static_cast<std::size_t>(index)].numel;
  }
  const BufferId grads =
      allocate(buffer(BufferKind::unsharded_grad, step.unit, numel, step.gradients));
  state(step.unit).grads.push_back(grads);
  return grads;
}

/// Parameters of the unit's gradients, in layout order.
std::vector<int> Fsdp2::reduced_parameters(UnitId unit) const {
  std::vector<int> out;
  for (const BufferId grad : states_[unit.index()].grads) {
    const std::vector<int>& parameters = buffers_[grad.index()].parameters;
    out.insert(out.end(), parameters.begin(), parameters.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void Fsdp2::reduce(UnitId unit) {
  const std::vector<int> parameters = reduced_parameters(unit);
  State& s = state(unit);
  const FsdpUnit& u = unit_at(unit);
  std::int64_t row = 0;
  for (const int index : parameters) {
    row += u.parameters[static_cast<std::size_t>(index)].shard_numel;
  }
  const int ranks = plan_.mesh.shard;
  const BufferId input =
      allocate(buffer(BufferKind::reduce_scatter_input, unit, row * ranks, parameters));
  const OpId packed = ops_.add(ChunkCat{s.grads, input}, Stream::compute, unit);
  for (const BufferId grad : std::exchange(s.grads, {})) {
    free(grad);
  }
  ops_.wait(Stream::reduce_scatter, packed);
  s.sharded_grad = resident(buffer(BufferKind::sharded_grad, unit, row, parameters));
  if (!collectives()) {
    reduce_locally(unit, input);
    return;
  }
  const bool cast = u.reduce_dtype != u.master_dtype;
  const BufferId output =
      cast ? allocate(buffer(BufferKind::reduce_scatter_output, unit, row, parameters))
           : s.sharded_grad;
  const double divisor = policy_.gradient_divide_factor.value_or(plan_.mesh.world());
  const bool average = divisor == static_cast<double>(ranks);
  // Half precision sums could overflow: PyTorch divides with kernels of its own around a plain sum.
  const ReduceOp op = u.reduce_dtype == DType::f16 ? ReduceOp::sum
                      : average                    ? ReduceOp::avg
                                                   : ReduceOp::premul_sum;
  const OpId reduced = ops_.add(ReduceScatter{.group = GroupKind::shard,
                                              .from = input,
                                              .to = output,
                                              .send = row * ranks,
                                              .recv = row,
                                              .dtype = u.reduce_dtype,
                                              .op = op,
                                              .factor = 1.0 / divisor},
                                Stream::reduce_scatter, unit);
  if (cast) {
    ops_.add(Cast{output, s.sharded_grad}, Stream::reduce_scatter, unit);
    free(output);
  }
  in_flight_.push_back({.input = input, .reduced = reduced});
  s.reduced = *ops_.newest(Stream::reduce_scatter);
}

void Fsdp2::reduce_locally(UnitId unit, BufferId input) {
  const OpId copied = ops_.add(Cast{input, state(unit).sharded_grad}, Stream::reduce_scatter, unit);
  in_flight_.push_back({.input = input, .reduced = copied});
  state(unit).reduced = copied;
}

void Fsdp2::release_inputs() {
  while (static_cast<int>(in_flight_.size()) >= policy_.reduce_scatter_buffers) {
    release_oldest_input();
  }
}

void Fsdp2::release_oldest_input() {
  const InFlight oldest = in_flight_.front();
  in_flight_.pop_front();
  ops_.wait(Stream::compute, oldest.reduced);
  free(oldest.input);
}

}  // namespace fsdp
