#include "core/record/host_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace fsdp {
namespace {

/// The operations that traces name; casts and bookkeeping are ours alone.
bool in_order_list(const Op& op, Profile profile) {
  if (const auto* compute = std::get_if<Compute>(&op.work)) {
    return !compute->gemms.empty();
  }
  return is_collective(op) || std::holds_alternative<CopyIn>(op.work) ||
         std::holds_alternative<CopyOut>(op.work) || std::holds_alternative<ChunkCat>(op.work) ||
         std::holds_alternative<ReshardToSubmesh>(op.work) ||
         (std::holds_alternative<Cast>(op.work) && op.stream == Stream::all_gather_copy_in &&
          profile == Profile::fsdp1);
}

std::string operation_text(const Schedule& schedule, const Op& op) {
  return std::holds_alternative<Compute>(op.work)
             ? std::string("compute")
             : fmt::format("{} {}", name_of(op), schedule.plan[op.unit].name);
}

/// A wait for an op that traces do not name is a wait for the newest named one before it on its
/// stream.
std::optional<OpId> named_before(const Schedule& schedule, OpId id) {
  const Stream stream = schedule[id].stream;
  for (; id.valid(); --id.value) {
    if (schedule[id].stream == stream &&
        in_order_list(schedule[id], schedule.plan.policy.profile)) {
      return id;
    }
  }
  return std::nullopt;
}

/// What the host waits for: FSDP1's limiter for the free of a unit (of the step before where the op
/// is invalid), offload for a copy.
std::string awaited(const Schedule& schedule, const HostWait& wait) {
  if (!wait.until.valid()) {
    return fmt::format("free_unsharded {}", schedule.plan[wait.freed].name);
  }
  const Op& op = schedule[wait.until];
  return std::holds_alternative<Free>(op.work)
             ? fmt::format("free_unsharded {}", schedule.plan[op.unit].name)
             : fmt::format("{}/{}", to_text(op.stream, schedule.plan.policy.profile),
                           operation_text(schedule, op));
}

struct Wait {
  Stream stream;
  OpId until;
};

/// Waits by the op behind which the host issued them at the latest: as early as they can stand, so
/// that a name in them means the op that is meant and not a later one of the same name. A wait for
/// a reduction of an earlier micro-batch stands where PyTorch issues it, right before the op that
/// waits.
std::vector<std::vector<Wait>> waits_by_place(const Schedule& schedule) {
  std::vector<std::vector<Wait>> out(schedule.ops.size() + 1);
  std::array<std::size_t, stream_count> newest{};  // 1 + index, 0 for none
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    std::size_t& before = newest[static_cast<std::size_t>(op.stream)];
    for (const OpId edge : op.after) {
      const bool stale =
          schedule[edge].micro != op.micro && schedule[edge].stream != Stream::compute;
      out[stale ? i : std::max(before, edge.index() + 1)].push_back({op.stream, edge});
    }
    before = i + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> host_order(const Schedule& schedule) {
  const Profile profile = schedule.plan.policy.profile;
  const auto waits = waits_by_place(schedule);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const std::string when = fmt::format("{}{}", to_text(op.phase).front(), op.micro);
    for (const Wait& wait : waits[i]) {
      if (profile == Profile::fsdp1 && wait.stream == Stream::compute &&
          schedule[wait.until].stream == Stream::all_gather_copy_in) {
        continue;  // PyTorch's wait is for the unshard stream, which has issued nothing (NO_SHARD)
      }
      if (const auto named = named_before(schedule, wait.until)) {
        out.push_back(fmt::format("{} {}: wait {}/{}", when, to_text(wait.stream, profile),
                                  to_text(schedule[*named].stream, profile),
                                  operation_text(schedule, schedule[*named])));
      }
    }
    const auto* release = std::get_if<Free>(&op.work);
    if (const auto* wait = std::get_if<HostWait>(&op.work)) {
      out.push_back(fmt::format("{} host: synchronize {}", when, awaited(schedule, *wait)));
    } else if (release != nullptr && schedule[release->buffer].kind == BufferKind::unsharded) {
      out.push_back(fmt::format("{} host: free_unsharded {}", when, schedule.plan[op.unit].name));
    } else if (in_order_list(op, profile)) {
      out.push_back(fmt::format("{} {}: {}", when, to_text(op.stream, profile),
                                operation_text(schedule, op)));
    }
  }
  return out;
}

}  // namespace fsdp
