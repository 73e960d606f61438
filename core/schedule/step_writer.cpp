#include "core/schedule/step_writer.hpp"

#include <utility>

namespace fsdp {
namespace {

struct Extent {
  DType dtype;
  std::int64_t numel;
};

/// A row of elements, or of bytes where the unit's parameters have several dtypes.
template <class TypeOf, class NumelOf>
Extent extent_of(const FsdpUnit& unit, DType uniform, TypeOf type_of, NumelOf numel_of,
                 std::int64_t uniform_numel) {
  std::int64_t bytes = 0;
  bool mixed = false;
  for (const UnitParameter& parameter : unit.parameters) {
    bytes += bytes_of(numel_of(parameter), type_of(parameter)).value;
    mixed = mixed || type_of(parameter) != type_of(unit.parameters.front());
  }
  return mixed ? Extent{DType::u8, bytes} : Extent{uniform, uniform_numel};
}

Extent master_shard(const FsdpUnit& unit) {
  return extent_of(
      unit, unit.master_dtype, [](const UnitParameter& p) { return p.dtype; },
      [](const UnitParameter& p) { return p.shard_numel; }, unit.shard_numel);
}

Extent unsharded(const FsdpUnit& unit) {
  return extent_of(
      unit, unit.gather_dtype, [](const UnitParameter& p) { return p.gather_dtype; },
      [](const UnitParameter& p) { return p.padded_numel; }, unit.padded_numel);
}

/// Dtype and, where it follows from the kind, size.
Extent extent(BufferKind kind, const FsdpUnit& unit, int ranks) {
  switch (kind) {
    case BufferKind::shard:
    case BufferKind::device_shard:
      return master_shard(unit);
    case BufferKind::cast_shard:
      return {unit.gather_dtype, unit.gather_shard_numel};
    case BufferKind::all_gather_output:
      return {unit.gather_dtype, unit.gather_shard_numel * ranks};
    case BufferKind::unsharded:
    case BufferKind::resharded:
      return unsharded(unit);
    case BufferKind::flat_grad:
      return {unit.param_dtype, unit.padded_numel};
    case BufferKind::sharded_grad:
      return {unit.master_dtype, unit.shard_numel};
    case BufferKind::chunks:
    case BufferKind::unsharded_grad:
      return {unit.param_dtype, unit.numel};
    case BufferKind::reduce_scatter_input:
      return {unit.reduce_dtype, unit.padded_numel};
    case BufferKind::reduce_scatter_output:
      return {unit.reduce_dtype, unit.shard_numel};
  }
  return {};
}

Pool pool_of(BufferKind kind, const FsdpPolicy& policy) {
  const bool fsdp1 = policy.profile == Profile::fsdp1;
  switch (kind) {
    case BufferKind::shard:
    case BufferKind::sharded_grad:
      return policy.cpu_offload ? Pool::pinned_host : Pool::resident;
    case BufferKind::device_shard:
    case BufferKind::cast_shard:
    case BufferKind::all_gather_output:
      return Pool::all_gather_copy_in;
    case BufferKind::unsharded:
      return fsdp1 ? Pool::all_gather : Pool::compute;
    case BufferKind::resharded:
    case BufferKind::chunks:
    case BufferKind::unsharded_grad:
    case BufferKind::flat_grad:
      return Pool::compute;
    case BufferKind::reduce_scatter_input:
      return fsdp1 ? Pool::reduce_scatter : Pool::compute;
    case BufferKind::reduce_scatter_output:
      return Pool::reduce_scatter;
  }
  return Pool::compute;
}

}  // namespace

void StepWriter::wait_stream(Stream stream, Stream other) {
  if (const auto op = ops_.newest(other)) {
    ops_.wait(stream, *op);
  }
}

void StepWriter::divide(BufferId buffer, double by, Stream stream, UnitId unit) {
  if (by != 1) {
    ops_.add(Divide{buffer, by}, stream, unit);
  }
}

Buffer StepWriter::buffer(BufferKind kind, UnitId id, std::int64_t numel,
                          std::vector<int> parameters) const {
  const Extent own = extent(kind, unit(id), plan_.mesh.shard);
  return {.kind = kind,
          .pool = pool_of(kind, plan_.policy),
          .unit = id,
          .dtype = own.dtype,
          .numel = numel < 0 ? own.numel : numel,
          .parameters = std::move(parameters)};
}

BufferId StepWriter::persistent(Buffer buffer) {
  buffers_.push_back(std::move(buffer));
  return {static_cast<std::int32_t>(buffers_.size() - 1)};
}

BufferId StepWriter::allocate(Buffer buffer) {
  const Stream stream = stream_of(buffer.pool);
  const UnitId unit = buffer.unit;
  const BufferId id = persistent(std::move(buffer));
  ops_.add(Allocate{id}, stream, unit);
  return id;
}

void StepWriter::free(BufferId buffer) { free(buffer, stream_of(buffers_[buffer.index()].pool)); }

void StepWriter::free(BufferId buffer, Stream stream) {
  ops_.add(Free{buffer}, stream, buffers_[buffer.index()].unit);
}

Schedule StepWriter::finish() {
  for (const Stream stream : {Stream::all_gather_copy_in, Stream::all_gather,
                              Stream::reduce_scatter, Stream::all_reduce, Stream::host}) {
    wait_stream(Stream::compute, stream);
  }
  ops_.add(StepEnd{}, Stream::compute, {});
  return {.plan = plan_, .buffers = std::move(buffers_), .ops = ops_.take()};
}

}  // namespace fsdp
