// Memory of a schedule: peaks are a fold over its Allocate and Free ops, and arenas are laid out
// here once, so that the simulated bytes and the bytes a backend allocates are the same number.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Offsets of all buffers inside one arena a pool.
struct ArenaLayout {
  std::vector<Bytes> offsets;                ///< by buffer
  std::array<Bytes, pool_count> pool_bytes;  ///< size of each arena, 64-byte aligned blocks
  Bytes total() const;
};

/// First fit in host order; blocks are aligned to 64 bytes.
ArenaLayout layout_arenas(const Schedule& schedule);

/// The most bytes alive at one moment of host order.
struct MemoryPeak {
  Bytes total;     ///< of FSDP's transient buffers: see golden_kinds in memory.cpp
  std::string at;  ///< "copy_out model.layers.1"
  std::map<BufferKind, Bytes> by_kind;
};

/// Peak of each phase over FSDP's own transient buffers (gather outputs, reduce-scatter inputs,
/// unsharded parameters and gradients), looked at where PyTorch traces look: the figures in
/// tests/golden.
std::map<Phase, MemoryPeak> memory_by_phase(const Schedule& schedule);

/// A pool's use: an allocator reserves more than is ever alive, where blocks of unlike sizes follow
/// each other.
struct PoolUse {
  Bytes live;      ///< the most bytes allocated at once
  Bytes reserved;  ///< the arena's size
};

/// What a rank needs, without activations and logits.
struct MemoryReport {
  Bytes resident;   ///< master shards and sharded gradients
  Bytes optimizer;  ///< Adam's two moments over the shards, in the master dtype (not held by the
                    ///< replay)
  Bytes transient_live;  ///< the most transient bytes alive at once, all kinds
  Bytes arenas;          ///< what the replay allocates: all pools, resident included
  std::array<PoolUse, pool_count> pools;
  BufferId largest{};  ///< transient, the largest contiguous one; invalid without any
  Bytes total() const { return arenas + optimizer; }
};
MemoryReport memory_report(const Schedule& schedule);

}  // namespace fsdp
