// How FSDP2's units are gathered, copied out and freed again.
#include <algorithm>
#include <utility>

#include "core/model/releases.hpp"
#include "core/schedule/fsdp2.hpp"

namespace fsdp {

void Fsdp2::unshard(UnitId unit, During during) {
  State& s = state(unit);
  if (s.pending || s.unsharded.valid()) {
    return;
  }
  const auto& sharded = policy_.keep_sharded_in_backward;
  if (during == During::backward &&
      std::find(sharded.begin(), sharded.end(), unit_at(unit).name) != sharded.end()) {
    return;
  }
  if (s.resharded_at.valid()) {
    writer_.wait(Stream::all_gather_copy_in, std::exchange(s.resharded_at, {}));
  }
  s.pending = true;
  if (!collectives()) {
    return;
  }
  const int ranks = gather_ranks(unit);
  const BufferId source = gather_input(unit);
  s.gather_output = writer_.allocate(writer_.buffer(BufferKind::all_gather_output, unit));
  const std::int64_t recv = writer_[s.gather_output].numel;
  const OpId copied =
      writer_.add(CopyIn{source, s.gather_output}, Stream::all_gather_copy_in, unit);
  if (source != s.shard && source != s.resharded) {
    writer_.free(source);
  }
  writer_.wait(Stream::all_gather, copied);
  const GroupKind kind = s.resharded.valid() ? GroupKind::submesh : GroupKind::shard;
  s.gathered = writer_.add(AllGather{.group = {kind, ranks},
                                     .from = s.gather_output,
                                     .to = s.gather_output,
                                     .send = recv / ranks,
                                     .recv = recv,
                                     .dtype = unit_at(unit).gather_dtype},
                           Stream::all_gather, unit);
}

/// The shard as it is gathered: brought to the device if offloaded, cast if the dtypes differ (a
/// shard of a sub-group is copied all the same).
BufferId Fsdp2::gather_input(UnitId unit) {
  constexpr Stream stream = Stream::all_gather_copy_in;
  const State& s = states_[unit.index()];
  const FsdpUnit& u = unit_at(unit);
  const auto casts = [](const UnitParameter& p) { return p.gather_dtype != p.dtype; };
  const bool cast = std::any_of(u.parameters.begin(), u.parameters.end(), casts);
  BufferId source = s.resharded.valid() ? s.resharded : s.shard;
  BufferId on_device;
  if (policy_.cpu_offload && source == s.shard) {
    on_device = writer_.allocate(writer_.buffer(BufferKind::device_shard, unit));
    writer_.add(HostToDevice{source, on_device}, stream, unit);
    source = on_device;
  }
  if (cast) {
    const std::int64_t numel =
        s.resharded.valid() ? writer_[s.resharded].numel : u.gather_shard_numel;
    const BufferId target = writer_.allocate(writer_.buffer(BufferKind::cast_shard, unit, numel));
    writer_.add(Cast{source, target}, stream, unit);
    source = target;
    if (on_device.valid()) {
      writer_.free(on_device);
    }
  }
  return source;
}

void Fsdp2::wait_for_unshard(UnitId unit, During during) {
  State& s = state(unit);
  if (!s.pending) {
    return;
  }
  s.pending = false;
  std::optional<Held> previous;
  if (during == During::forward) {
    previous = std::exchange(held_, {});
  }
  if (previous) {
    writer_.wait(Stream::all_gather_copy_in, previous->copied_out);
  }
  if (!collectives()) {
    unshard_locally(unit);
    return;
  }
  writer_.wait(Stream::compute, s.gathered);
  copy_out(unit, previous);
  const OpId copied_out = *writer_.newest(Stream::compute);
  if (during == During::forward) {
    held_ = Held{.output = s.gather_output, .copied_out = copied_out};
  } else {
    writer_.wait(Stream::all_gather_copy_in, copied_out);
    writer_.free(s.gather_output);
  }
  if (s.resharded.valid()) {
    writer_.free(std::exchange(s.resharded, {}));
  }
}

void Fsdp2::copy_out(UnitId unit, std::optional<Held> previous) {
  State& s = state(unit);
  // Up to 2.14 a local variable of PyTorch's keeps the output of the gather before until this
  // unit's parameters have been allocated.
  const bool early = policy_.version >= since::early_drop;
  if (previous && early) {
    writer_.free(previous->output);
  }
  s.unsharded = writer_.allocate(writer_.buffer(BufferKind::unsharded, unit));
  std::int64_t elsewhere = 0;
  for (const UnitParameter& parameter : unit_at(unit).parameters) {
    elsewhere += parameter.shard_dim > 0 ? parameter.padded_numel : 0;
  }
  BufferId chunks;
  if (elsewhere > 0) {
    chunks = writer_.allocate(writer_.buffer(BufferKind::chunks, unit, elsewhere));
  }
  if (previous && !early) {
    writer_.free(previous->output);
  }
  writer_.add(CopyOut{s.gather_output, s.unsharded, chunks}, Stream::compute, unit);
  if (chunks.valid()) {
    writer_.add(Concat{{chunks}, s.unsharded}, Stream::compute, unit);
    // The event that gathers wait for stands behind it, on the copy-out's stream.
    writer_.free(chunks);
  }
}

void Fsdp2::unshard_locally(UnitId unit) {
  State& s = state(unit);
  BufferId source = s.shard;
  if (policy_.cpu_offload) {
    source = writer_.allocate(writer_.buffer(BufferKind::device_shard, unit));
    writer_.add(HostToDevice{s.shard, source}, Stream::all_gather_copy_in, unit);
    writer_.wait_stream(Stream::compute, Stream::all_gather_copy_in);
  }
  s.unsharded = writer_.allocate(writer_.buffer(BufferKind::unsharded, unit));
  const OpId copied = writer_.add(Cast{source, s.unsharded}, Stream::compute, unit);
  if (source != s.shard) {
    writer_.wait(Stream::all_gather_copy_in, copied);
    writer_.free(source);
  }
}

void Fsdp2::reshard(UnitId unit) {
  State& s = state(unit);
  if (s.unsharded.valid()) {
    writer_.free(std::exchange(s.unsharded, {}));
  }
  // A gather that was prefetched and that nobody has waited for may still read its slice.
  if (s.resharded.valid() && !s.pending) {
    writer_.free(std::exchange(s.resharded, {}));
  }
}

void Fsdp2::reshard_to_submesh(UnitId unit) {
  State& s = state(unit);
  if (!s.unsharded.valid()) {
    return;
  }
  const int ranks = unit_at(unit).reshard_after_forward.to;
  const std::int64_t numel = writer_[s.unsharded].numel / ranks;
  s.resharded = writer_.allocate(writer_.buffer(BufferKind::resharded, unit, numel));
  s.resharded_at = writer_.add(ReshardToSubmesh{s.unsharded, s.resharded}, Stream::compute, unit);
  writer_.free(std::exchange(s.unsharded, {}));
}

/// Ranks of the next gather: the sub-group's after a reshard to one.
int Fsdp2::gather_ranks(UnitId unit) const {
  return states_[unit.index()].resharded.valid() ? unit_at(unit).reshard_after_forward.to
                                                 : plan_.mesh.shard;
}

bool Fsdp2::collectives() const {
  return plan_.mesh.shard > 1 || policy_.version < since::local_copies;
}

}  // namespace fsdp
