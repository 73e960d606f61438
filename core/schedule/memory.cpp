#include "core/schedule/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <numeric>

namespace fsdp {
namespace {

constexpr std::int64_t alignment = 64;

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// One pool's address space: blocks in use, sorted by offset.
class Arena {
 public:
  Bytes place(BufferId id, Bytes bytes) {
    const std::int64_t size = aligned(bytes.value);
    std::int64_t offset = 0;
    auto at = blocks_.begin();
    for (; at != blocks_.end() && at->begin - offset < size; ++at) {
      offset = at->begin + at->size;
    }
    blocks_.insert(at, {id, offset, size});
    end_ = std::max(end_, offset + size);
    return {offset};
  }
  void release(BufferId id) {
    blocks_.remove_if([id](const Block& block) { return block.id == id; });
  }
  Bytes size() const { return {end_}; }

 private:
  struct Block {
    BufferId id;
    std::int64_t begin;
    std::int64_t size;
  };
  std::list<Block> blocks_;
  std::int64_t end_ = 0;
};

/// Kinds that the recorded traces count; casts, shards and reduce-scatter outputs are not among
/// them.
bool in_traces(BufferKind kind) {
  return kind == BufferKind::all_gather_output || kind == BufferKind::reduce_scatter_input ||
         kind == BufferKind::unsharded || kind == BufferKind::unsharded_grad;
}

/// What the host is about to do when it allocates a buffer of this kind.
std::string_view moment(BufferKind kind) {
  switch (kind) {
    case BufferKind::unsharded:
      return "copy_out";
    case BufferKind::unsharded_grad:
      return "backward";
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
    if (schedule[id].pool == Pool::resident) {
      out.offsets[i] = arena(id).place(id, schedule[id].bytes());
    }
  }
  for (const Op& op : schedule.ops) {
    if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
      const BufferId id = allocate->buffer;
      out.offsets[id.index()] = arena(id).place(id, schedule[id].bytes());
    } else if (const auto* release = std::get_if<Free>(&op.work)) {
      arena(release->buffer).release(release->buffer);
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
  for (const Op& op : schedule.ops) {
    const auto* allocate = std::get_if<Allocate>(&op.work);
    const auto* release = std::get_if<Free>(&op.work);
    if (allocate == nullptr && release == nullptr) {
      continue;
    }
    const Buffer& buffer = schedule[allocate != nullptr ? allocate->buffer : release->buffer];
    if (!in_traces(buffer.kind)) {
      continue;
    }
    const Bytes change = allocate != nullptr ? buffer.bytes() : buffer.bytes() * -1;
    total += change;
    live[buffer.kind] += change;
    MemoryPeak& peak = out[op.phase];
    if (allocate != nullptr && total > peak.total) {
      peak = {.total = total,
              .at = fmt::format("{} {}", moment(buffer.kind), schedule.plan[op.unit].name),
              .by_kind = live};
    }
  }
  return out;
}

MemoryReport memory_report(const Schedule& schedule) {
  MemoryReport out;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.pool == Pool::resident) {
      out.resident += buffer.bytes();
    }
    if (buffer.kind == BufferKind::sharded_grad) {
      out.optimizer += buffer.bytes() * 2;
    }
  }
  Bytes live;
  for (const Op& op : schedule.ops) {
    if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
      live += schedule[allocate->buffer].bytes();
      out.transient_live = std::max(out.transient_live, live);
    } else if (const auto* release = std::get_if<Free>(&op.work)) {
      live -= schedule[release->buffer].bytes();
    }
  }
  out.arenas = layout_arenas(schedule).total();
  return out;
}

}  // namespace fsdp
