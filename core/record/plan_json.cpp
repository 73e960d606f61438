#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/record/host_order.hpp"
#include "core/record/plan_document.hpp"

namespace fsdp {
namespace {

using Json = nlohmann::ordered_json;

Json reshard_json(Reshard reshard) {
  return reshard.to <= 1 ? Json(reshard == Reshard::free()) : Json(reshard.to);
}

Json units_json(const Schedule& schedule) {
  Json out = Json::array();
  for (const FsdpUnit& unit : schedule.plan.units) {
    Json parameters = Json::array();
    for (const UnitParameter& parameter : unit.parameters) {
      parameters.push_back(parameter.path);
    }
    out.push_back({{"name", unit.name},
                   {"parameters", parameters},
                   {"numel", unit.numel},
                   {"padded_numel", unit.padded_numel},
                   {"shard_numel", unit.shard_numel},
                   {"reshard_after_forward", reshard_json(unit.reshard_after_forward)}});
  }
  return out;
}

/// Ranks of rank 0's group.
Json group_json(const DeviceMesh& mesh, const Group& group) {
  return {{"first", 0},
          {"stride", group.kind == GroupKind::replicate ? mesh.shard : 1},
          {"size", group.ranks}};
}

Json collective_json(const Schedule& schedule, const Op& op) {
  Json out{{"kind", name_of(op)},
           {"phase", to_text(op.phase)},
           {"micro", op.micro},
           {"unit", schedule.plan[op.unit].name},
           {"group", group_json(schedule.plan.mesh, *group_of(op))}};
  if (const auto* gather = std::get_if<AllGather>(&op.work)) {
    out.update({{"send", gather->send},
                {"recv", gather->recv},
                {"dtype", to_text(gather->dtype)},
                {"op", nullptr},
                {"in_place", gather->in_place()}});
  } else if (const auto* scatter = std::get_if<ReduceScatter>(&op.work)) {
    out.update({{"send", scatter->send},
                {"recv", scatter->recv},
                {"dtype", to_text(scatter->dtype)},
                {"op", to_text(scatter->op)},
                {"in_place", false}});
  } else if (const auto* reduce = std::get_if<AllReduce>(&op.work)) {
    out.update({{"send", reduce->numel},
                {"recv", reduce->numel},
                {"dtype", to_text(reduce->dtype)},
                {"op", to_text(reduce->op)},
                {"in_place", true}});
  }
  return out;
}

Json collectives_json(const Schedule& schedule) {
  Json out = Json::array();
  for (const Op& op : schedule.ops) {
    if (is_collective(op)) {
      out.push_back(collective_json(schedule, op));
    }
  }
  return out;
}

Json memory_json(const Schedule& schedule) {
  Json out = Json::object();
  for (const auto& [phase, peak] : memory_by_phase(schedule)) {
    Json entry{{"total", peak.total.value}, {"at", peak.at}};
    for (const BufferKind kind :
         {BufferKind::all_gather_output, BufferKind::reduce_scatter_input, BufferKind::unsharded,
          BufferKind::resharded, BufferKind::unsharded_grad}) {
      const auto it = peak.by_kind.find(kind);
      entry[std::string(to_text(kind))] = it == peak.by_kind.end() ? 0 : it->second.value;
    }
    out[std::string(to_text(phase))] = entry;
  }
  return out;
}

Json pools_json(const MemoryReport& memory) {
  Json out = Json::object();
  for (int pool = 0; pool < pool_count; ++pool) {
    const PoolUse& use = memory.pools[static_cast<std::size_t>(pool)];
    if (use.reserved.value > 0) {
      out[std::string(to_text(static_cast<Pool>(pool)))] = {{"allocated_bytes", use.live.value},
                                                            {"reserved_bytes", use.reserved.value}};
    }
  }
  return out;
}

Json largest_json(const Schedule& schedule, BufferId id) {
  if (!id.valid()) {
    return nullptr;
  }
  const Buffer& buffer = schedule[id];
  return {{"bytes", buffer.bytes().value},
          {"kind", to_text(buffer.kind)},
          {"unit", schedule.plan[buffer.unit].name}};
}

Json needs_json(const MemoryBudget& budget) {
  Json out = Json::array();
  for (const MemoryNeed& need : budget.needs) {
    out.push_back({{"activation_checkpointing", to_text(need.checkpointing)},
                   {"activations_bytes", need.activations.value},
                   {"logits_bytes", need.logits.value},
                   {"total_bytes", need.total.value},
                   {"fits", budget.limit ? Json(need.total <= *budget.limit) : Json(nullptr)}});
  }
  return out;
}

Json memory_per_rank_json(const PlanReport& report) {
  const MemoryBudget& budget = report.memory;
  const MemoryReport& fsdp = budget.fsdp;
  return {{"resident_bytes", fsdp.resident.value},
          {"optimizer_bytes", fsdp.optimizer.value},
          {"transient_live_bytes", fsdp.transient_live.value},
          {"largest_buffer", largest_json(report.schedule, fsdp.largest)},
          {"pools", pools_json(fsdp)},
          {"with_activations", needs_json(budget)},
          {"activation_checkpointing", to_text(budget.chosen().checkpointing)},
          {"total_bytes", budget.chosen().total.value},
          {"host_bytes", budget.host.value},
          {"limit_bytes", budget.limit ? Json(budget.limit->value) : Json(nullptr)},
          {"verdict", verdict(budget)}};
}

Json alignment_json(const PlanReport& report) {
  Json out = Json::array();
  for (const CollectiveAlignment& entry : report.alignment) {
    const FsdpUnit& unit = report.schedule.plan[entry.unit];
    Json parameters = Json::array();
    for (const CollectiveAlignment::Parameter& parameter : entry.parameters) {
      parameters.push_back(
          {{"path", unit.parameters[static_cast<std::size_t>(parameter.index)].path},
           {"offset_bytes", parameter.offset.value}});
    }
    out.push_back({{"unit", unit.name},
                   {"collective", name_of(report.schedule[entry.op])},
                   {"a_step", entry.count},
                   {"part_bytes", entry.part.value},
                   {"beyond_16_bytes", entry.beyond.value},
                   {"misaligned_parameters", parameters},
                   {"padding_bytes", entry.padding.value}});
  }
  return out;
}

Json findings_json(const PlanReport& report) {
  Json out = Json::array();
  for (const Finding& finding : report.findings) {
    out.push_back(
        {{"id", finding.id},
         {"unit", finding.unit},
         {"parameter", finding.parameter.empty() ? Json(nullptr) : Json(finding.parameter)},
         {"what", finding.what},
         {"why", finding.why},
         {"bytes", finding.bytes.value},
         {"cost", to_text(finding.cost)},
         {"time_ns", finding.time ? Json(finding.time->value) : Json(nullptr)},
         {"remedy", finding.remedy}});
  }
  return out;
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  const Schedule& schedule = report.schedule;
  const ModelFlops flops = model_flops(report.model, schedule.plan.batch);
  const Json out{{"policy", to_text(schedule.plan.policy)},
                 {"units", units_json(schedule)},
                 {"collectives", collectives_json(schedule)},
                 {"memory", memory_json(schedule)},
                 {"memory_per_rank", memory_per_rank_json(report)},
                 {"flop_a_micro_batch",
                  {{"forward", flops.forward.value},
                   {"backward", flops.backward.value},
                   {"recompute", flops.recompute.value}}},
                 {"findings", findings_json(report)},
                 {"times", report.times},
                 {"alignment", alignment_json(report)},
                 {"order", host_order(schedule)}};
  return out.dump(1);
}

}  // namespace fsdp
