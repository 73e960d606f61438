// What one rank needs in all, under each kind of activation checkpointing, and whether it fits.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "core/model/model_spec.hpp"
#include "core/schedule/memory.hpp"

namespace fsdp {

/// Activations are at their highest when backward begins, FSDP's buffers somewhere in forward or
/// backward: the sum of both is an upper bound.
struct MemoryNeed {
  Checkpointing checkpointing = Checkpointing::none;
  Bytes activations;  ///< what autograd keeps, and what one block computes again
  Bytes logits;
  Bytes total;  ///< of the device, with all that FSDP and the optimizer hold
};

struct MemoryBudget {
  MemoryReport fsdp;
  Bytes host;  ///< pinned, with cpu_offload: shards, gradients and Adam's moments
  std::array<MemoryNeed, 3> needs;  ///< by Checkpointing
  Checkpointing policy = Checkpointing::none;
  std::optional<Bytes> limit;

  const MemoryNeed& chosen() const { return needs[static_cast<std::size_t>(policy)]; }
  Bytes reserved_transient() const;  ///< all pools but the resident ones
};

MemoryBudget memory_budget(const ModelSpec& model, const Schedule& schedule,
                           std::optional<Bytes> limit);

/// "fits 80 GiB with 12 GiB to spare", or what does not, why, and what would.
std::string verdict(const MemoryBudget& budget);

}  // namespace fsdp
