#include "core/advice/alignment.hpp"

#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace fsdp {
namespace {

Bytes up_to_vector(Bytes bytes) {
  return {(bytes.value + vector_bytes - 1) / vector_bytes * vector_bytes};
}

/// A rank's part of a collective and the unit's parameters in it.
struct Part {
  Bytes bytes;
  std::vector<int> parameters;
  std::optional<DType> dtype;  ///< of the parameters; absent: each has its gather dtype
};

std::optional<Part> part_of(const Schedule& schedule, const Op& op) {
  Part part;
  if (const auto* gather = std::get_if<AllGather>(&op.work)) {
    part.bytes = bytes_of(gather->send, gather->dtype);
    part.parameters.resize(schedule.plan[op.unit].parameters.size());
    std::iota(part.parameters.begin(), part.parameters.end(), 0);
    return part;
  }
  if (const auto* scatter = std::get_if<ReduceScatter>(&op.work)) {
    part.bytes = bytes_of(scatter->recv, scatter->dtype);
    part.parameters = schedule[scatter->from].parameters;
    part.dtype = scatter->dtype;
    return part;
  }
  return std::nullopt;
}

/// Shares of a sub-group are cut from the whole row, not by parameter.
bool is_cut_by_parameter(const Schedule& schedule, const Op& op) {
  return schedule.plan.policy.profile == Profile::fsdp2 && group_of(op)->kind != GroupKind::submesh;
}

CollectiveAlignment alignment_of(const Schedule& schedule, OpId id, const Part& part) {
  CollectiveAlignment out{.unit = schedule[id].unit,
                          .op = id,
                          .count = 0,
                          .part = part.bytes,
                          .beyond = {part.bytes.value % vector_bytes},
                          .parameters = {},
                          .padding = {}};
  if (!is_cut_by_parameter(schedule, schedule[id])) {
    out.padding = up_to_vector(part.bytes) - part.bytes;
    return out;
  }
  Bytes offset;
  for (const int index : part.parameters) {
    const UnitParameter& parameter =
        schedule.plan[out.unit].parameters[static_cast<std::size_t>(index)];
    const Bytes bytes =
        bytes_of(parameter.shard_numel, part.dtype.value_or(parameter.gather_dtype));
    if (offset.value % vector_bytes != 0) {
      out.parameters.push_back({.index = index, .offset = offset});
    }
    offset += bytes;
    out.padding += up_to_vector(bytes) - bytes;
  }
  return out;
}

}  // namespace

std::vector<CollectiveAlignment> alignment_report(const Schedule& schedule) {
  std::map<std::tuple<UnitId, std::size_t, GroupKind>, std::size_t> places;
  std::vector<CollectiveAlignment> out;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const auto part = part_of(schedule, op);
    if (!part) {
      continue;
    }
    const auto [it, added] =
        places.try_emplace(std::tuple(op.unit, op.work.index(), group_of(op)->kind), out.size());
    if (added) {
      out.push_back(alignment_of(schedule, {static_cast<std::int32_t>(i)}, *part));
    }
    out[it->second].count += 1;
  }
  return out;
}

}  // namespace fsdp
