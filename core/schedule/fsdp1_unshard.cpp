// How FSDP1's units are gathered and freed, and what the host waits for before it gathers more.
#include <algorithm>
#include <utility>

#include "core/schedule/fsdp1.hpp"

namespace fsdp {
namespace {

/// Frees that may be outstanding when the next gather is issued (FSDP1's _FreeEventQueue).
constexpr std::size_t most_free_events = 2;

}  // namespace

void Fsdp1::unshard(UnitId unit) {
  State& s = state(unit);
  s.points_to_unsharded = true;
  if (step_ && !s.views_made) {
    s.views_made = true;
    s.views_made_at = *step_;
  }
  if (!shards() || !s.unsharded.valid()) {
    cast_shard(unit);
  }
  if (policy_.fsdp1.limit_all_gathers) {
    limit_all_gathers(unit);
  }
  if (!s.unsharded.valid()) {
    gather(unit);
  }
}

/// The shard as it is gathered, on a stream of its own.
void Fsdp1::cast_shard(UnitId unit) {
  constexpr Stream stream = Stream::all_gather_copy_in;
  State& s = state(unit);
  BufferId source = s.shard;
  if (policy_.cpu_offload) {
    const BufferId to = writer_.allocate(writer_.buffer(BufferKind::device_shard, unit));
    writer_.add(HostToDevice{source, to}, stream, unit);
    source = to;
  }
  if (casts(unit)) {
    const BufferId to = writer_.allocate(writer_.buffer(BufferKind::cast_shard, unit));
    writer_.add(Cast{source, to}, stream, unit);
    if (source != s.shard) {
      writer_.free(source);
    }
    source = to;
  }
  if (source != s.shard) {
    if (s.cast.valid()) {
      writer_.free(s.cast, Stream::compute);
    }
    s.cast = source;
    writer_.wait_stream(Stream::all_gather, stream);
  }
}

/// Blocks the host until the oldest of the outstanding frees has run, even for a unit that gathers
/// nothing.
void Fsdp1::limit_all_gathers(UnitId unit) {
  if (free_events_.size() < most_free_events) {
    return;
  }
  const FreeEvent oldest = free_events_.front();
  free_events_.pop_front();
  writer_.add(HostWait{oldest.freed, oldest.unit}, Stream::host, unit);
}

void Fsdp1::gather(UnitId unit) {
  State& s = state(unit);
  const FsdpUnit& u = unit_at(unit);
  const BufferId source = s.cast.valid() ? s.cast : s.shard;
  if (!shards()) {
    // NO_SHARD: the unit is used as it is; without a cast that is the shard itself.
    s.unsharded = source;
    writer_.wait_stream(Stream::compute, Stream::all_gather_copy_in);
    return;
  }
  s.unsharded = writer_.allocate(writer_.buffer(BufferKind::unsharded, unit));
  writer_.add(AllGather{.group = {GroupKind::shard, plan_.mesh.shard},
                        .from = source,
                        .to = s.unsharded,
                        .send = u.gather_shard_numel,
                        .recv = u.gather_shard_numel * plan_.mesh.shard,
                        .dtype = u.gather_dtype},
              Stream::all_gather, unit);
  if (s.cast.valid()) {
    writer_.free(std::exchange(s.cast, {}), Stream::all_gather);
  }
}

/// Freed memory is handed on once the compute stream has passed this point.
void Fsdp1::reshard(UnitId unit, bool frees) {
  State& s = state(unit);
  s.points_to_unsharded = false;
  s.prefetched = false;
  if (!shards()) {
    s.unsharded = {};
    if (s.cast.valid()) {
      writer_.free(std::exchange(s.cast, {}), Stream::compute);
    }
  }
  if (!frees) {
    return;
  }
  if (s.unsharded.valid()) {
    const BufferId freed = std::exchange(s.unsharded, {});
    if (!is_persistent(writer_[freed].pool)) {  // else it was there before the step
      writer_.free(freed, Stream::compute);
    }
    if (policy_.fsdp1.limit_all_gathers) {
      free_events_.push_back(
          {.unit = unit, .freed = writer_.newest(Stream::compute).value_or(OpId{})});
    }
  }
}

void Fsdp1::prefetch(UnitId unit) {
  const std::optional<UnitId> target = prefetch_target(unit);
  if (!target) {
    return;
  }
  unshard(*target);
  state(*target).prefetched = true;
}

/// The unit before this one in post-forward order, or the one behind it in the order of the first
/// forward, if it is still wanted.
std::optional<UnitId> Fsdp1::prefetch_target(UnitId unit) const {
  const State& s = states_[unit.index()];
  const BackwardPrefetch wanted = policy_.fsdp1.backward_prefetch;
  if (s.training == Training::forward) {
    const auto at = std::find(forward_order_.begin(), forward_order_.end(), unit);
    if (!policy_.fsdp1.forward_prefetch || at == forward_order_.end() ||
        at + 1 == forward_order_.end()) {
      return std::nullopt;
    }
    const State& next = states_[(at + 1)->index()];
    return next.needs_forward_unshard && !next.prefetched ? std::optional(*(at + 1)) : std::nullopt;
  }
  const bool now = (s.training == Training::backward_pre && wanted == BackwardPrefetch::pre) ||
                   (s.training == Training::backward_post && wanted == BackwardPrefetch::post);
  if (!now || s.post_forward_index.value_or(0) < 1) {
    return std::nullopt;
  }
  const UnitId before = post_forward_order_[static_cast<std::size_t>(*s.post_forward_index - 1)];
  const State& target = states_[before.index()];
  return target.needs_backward_unshard && !target.prefetched ? std::optional(before) : std::nullopt;
}

}  // namespace fsdp
