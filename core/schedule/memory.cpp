#include "core/schedule/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <numeric>

#include "core/schedule/happens_before.hpp"

namespace fsdp {
namespace {

constexpr std::int64_t alignment = 64;

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// One pool's address space: blocks that cannot be handed on yet, sorted by offset.
class Arena {
 public:
  /// First fit. A freed block is free to an allocation that happens after the free.
  Bytes place(BufferId id, Bytes bytes, OpId at_op, const HappensBefore& before) {
    blocks_.remove_if(
        [&](const Block& block) { return block.freed.valid() && before(block.freed, at_op); });
    return place(id, bytes);
  }
  Bytes place(BufferId id, Bytes bytes) {
    const std::int64_t size = aligned(bytes.value);
    std::int64_t offset = 0;
    auto at = blocks_.begin();
    for (; at != blocks_.end() && at->begin - offset < size; ++at) {
      offset = at->begin + at->size;
    }
    blocks_.insert(at, {id, offset, size, {}});
    end_ = std::max(end_, offset + size);
    return {offset};
  }
  void release(BufferId id, OpId at_op) {
    const auto found = std::find_if(blocks_.begin(), blocks_.end(),
                                    [id](const Block& block) { return block.id == id; });
    if (found != blocks_.end()) {
      found->freed = at_op;
    }
  }
  Bytes size() const { return {end_}; }

 private:
  struct Block {
    BufferId id;
    std::int64_t begin;
    std::int64_t size;
    OpId freed;
  };
  std::list<Block> blocks_;
  std::int64_t end_ = 0;
};

/// Kinds that the recorded traces count; casts, shards and reduce-scatter outputs are not among
/// them.
bool in_traces(BufferKind kind) {
  return kind == BufferKind::all_gather_output || kind == BufferKind::reduce_scatter_input ||
         kind == BufferKind::unsharded || kind == BufferKind::resharded ||
         kind == BufferKind::unsharded_grad;
}

/// The recorder looks when a collective's buffer is allocated, before a copy-out, and at the start
/// of a post-backward, which is when the last gradients of a unit have appeared and, where it has
/// none, when its parameters are about to be freed.
bool is_looked_at(BufferKind allocated) {
  return allocated != BufferKind::resharded && allocated != BufferKind::unsharded_grad;
}

bool delivers_gradients(const Op& op) {
  const auto* compute = std::get_if<Compute>(&op.work);
  return compute != nullptr && !(compute->gradients.empty() && compute->adds_to.empty());
}

/// What the host is about to do when it allocates a buffer of this kind.
std::string_view moment(BufferKind kind) {
  switch (kind) {
    case BufferKind::unsharded:
      return "copy_out";
    default:
      return to_text(kind);
  }
}

}  // namespace

Bytes ArenaLayout::total() const {
  return std::accumulate(pool_bytes.begin(), pool_bytes.end(), Bytes{});
}

ArenaLayout layout_arenas(const Schedule& schedule) {
  std::array<Arena, pool_count> arenas;
  ArenaLayout out{.offsets = std::vector<Bytes>(schedule.buffers.size()), .pool_bytes = {}};
  const auto arena = [&](BufferId id) -> Arena& {
    return arenas[static_cast<std::size_t>(schedule[id].pool)];
  };
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const BufferId id{static_cast<std::int32_t>(i)};
    if (is_persistent(schedule[id].pool)) {
      out.offsets[i] = arena(id).place(id, schedule[id].bytes());
    }
  }
  const HappensBefore before(schedule);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const OpId at{static_cast<std::int32_t>(i)};
    if (const auto* allocate = std::get_if<Allocate>(&schedule[at].work)) {
      const BufferId id = allocate->buffer;
      out.offsets[id.index()] = arena(id).place(id, schedule[id].bytes(), at, before);
    } else if (const auto* release = std::get_if<Free>(&schedule[at].work)) {
      arena(release->buffer).release(release->buffer, at);
    }
  }
  for (std::size_t pool = 0; pool < arenas.size(); ++pool) {
    out.pool_bytes[pool] = arenas[pool].size();
  }
  return out;
}

std::map<Phase, MemoryPeak> memory_by_phase(const Schedule& schedule) {
  std::map<Phase, MemoryPeak> out;
  std::map<BufferKind, Bytes> live;
  Bytes total;
  const auto look = [&](const Op& op, std::string_view moment) {
    MemoryPeak& peak = out[op.phase];
    if (total > peak.total) {
      peak = {.total = total,
              .at = fmt::format("{} {}", moment, schedule.plan[op.unit].name),
              .by_kind = live};
    }
  };
  for (const Op& op : schedule.ops) {
    const auto* allocate = std::get_if<Allocate>(&op.work);
    const auto* release = std::get_if<Free>(&op.work);
    if (delivers_gradients(op)) {
      look(op, "backward");
    }
    if (allocate == nullptr && release == nullptr) {
      continue;
    }
    const Buffer& buffer = schedule[allocate != nullptr ? allocate->buffer : release->buffer];
    if (!in_traces(buffer.kind)) {
      continue;
    }
    if (release != nullptr && buffer.kind == BufferKind::unsharded && op.phase == Phase::backward) {
      look(op, "backward");
    }
    const Bytes change = allocate != nullptr ? buffer.bytes() : buffer.bytes() * -1;
    total += change;
    live[buffer.kind] += change;
    if (allocate != nullptr && is_looked_at(buffer.kind)) {
      look(op, moment(buffer.kind));
    }
  }
  return out;
}

MemoryReport memory_report(const Schedule& schedule) {
  MemoryReport out;
  std::array<Bytes, pool_count> alive{};
  Bytes transient;
  // Counts `buffer` as alive and remembers the most that ever were.
  const auto add = [&](const Buffer& buffer) {
    const auto pool = static_cast<std::size_t>(buffer.pool);
    alive[pool] += buffer.bytes();
    out.pools[pool].live = std::max(out.pools[pool].live, alive[pool]);
  };
  for (const Buffer& buffer : schedule.buffers) {
    if (is_persistent(buffer.pool)) {
      out.resident += buffer.bytes();
      add(buffer);
    }
    if (buffer.kind == BufferKind::sharded_grad) {
      out.optimizer += buffer.bytes() * 2;
    }
  }
  for (const Op& op : schedule.ops) {
    if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
      const Buffer& buffer = schedule[allocate->buffer];
      add(buffer);
      transient += buffer.bytes();
      out.transient_live = std::max(out.transient_live, transient);
      if (!out.largest.valid() || buffer.bytes() > schedule[out.largest].bytes()) {
        out.largest = allocate->buffer;
      }
    } else if (const auto* release = std::get_if<Free>(&op.work)) {
      const Buffer& buffer = schedule[release->buffer];
      alive[static_cast<std::size_t>(buffer.pool)] -= buffer.bytes();
      transient -= buffer.bytes();
    }
  }
  const ArenaLayout layout = layout_arenas(schedule);
  for (std::size_t pool = 0; pool < pool_count; ++pool) {
    out.pools[pool].reserved = layout.pool_bytes[pool];
  }
  out.arenas = layout.total();
  return out;
}

}  // namespace fsdp
