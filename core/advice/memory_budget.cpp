#include "core/advice/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/activations.hpp"

namespace fsdp {
namespace {

/// The part that weighs most, for whom it does not fit.
std::string heaviest(const MemoryBudget& budget) {
  const MemoryNeed& need = budget.chosen();
  const std::vector<std::pair<Bytes, std::string>> parts{
      {budget.fsdp.resident, "master shards and their gradients"},
      {budget.fsdp.optimizer, "Adam's two moments"},
      {budget.reserved_transient(), "FSDP's buffers"},
      {need.activations, "activations"},
      {need.logits, "logits"}};
  const auto most = std::max_element(
      parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return fmt::format("{} of it {}", to_text(most->first), most->second);
}

std::string what_would_fit(const MemoryBudget& budget) {
  for (const MemoryNeed& need : budget.needs) {
    if (need.total <= *budget.limit) {
      return fmt::format("with activation_checkpointing: {} it is {} and fits",
                         to_text(need.checkpointing), to_text(need.total));
    }
  }
  const Bytes state = budget.fsdp.resident + budget.fsdp.optimizer - budget.host;
  return state > *budget.limit
             ? "the sharded state alone is larger: more ranks in the shard group, or cpu_offload"
             : "no checkpointing makes it fit: smaller units, a smaller micro_batch, or more ranks";
}

}  // namespace

Bytes MemoryBudget::reserved_transient() const {
  Bytes out;
  for (int pool = 0; pool < pool_count; ++pool) {
    if (!is_persistent(static_cast<Pool>(pool))) {
      out += fsdp.pools[static_cast<std::size_t>(pool)].reserved;
    }
  }
  return out;
}

MemoryBudget memory_budget(const ModelSpec& model, const Schedule& schedule,
                           std::optional<Bytes> limit) {
  const FsdpPolicy& policy = schedule.plan.policy;
  MemoryBudget out{.fsdp = memory_report(schedule),
                   .host = {},
                   .needs = {},
                   .policy = policy.activation_checkpointing,
                   .limit = limit};
  if (policy.cpu_offload) {
    out.host =
        out.fsdp.pools[static_cast<std::size_t>(Pool::pinned_host)].reserved + out.fsdp.optimizer;
  }
  const Bytes held = out.fsdp.total() - out.host;
  const DType computed = schedule.plan.units.front().param_dtype;
  for (const Checkpointing kind :
       {Checkpointing::none, Checkpointing::selective, Checkpointing::full}) {
    const Activations kept = activations(model, schedule.plan.batch, computed, kind);
    MemoryNeed& need = out.needs[static_cast<std::size_t>(kind)];
    need = {.checkpointing = kind,
            .activations = kept.blocks + kept.one_block + kept.outside,
            .logits = kept.logits,
            .total = {}};
    need.total = held + need.activations + need.logits;
  }
  return out;
}

std::string verdict(const MemoryBudget& budget) {
  const Bytes total = budget.chosen().total;
  if (!budget.limit) {
    return fmt::format("{} at most; memory.limit says what fits", to_text(total));
  }
  if (total <= *budget.limit) {
    return fmt::format("{} at most, fits {} with {} to spare", to_text(total),
                       to_text(*budget.limit), to_text(*budget.limit - total));
  }
  return fmt::format("{} does not fit {}, {}; {}", to_text(total), to_text(*budget.limit),
                     heaviest(budget), what_would_fit(budget));
}

}  // namespace fsdp
