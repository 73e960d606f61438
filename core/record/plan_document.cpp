#include "core/record/plan_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/schedule/memory.hpp"

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
Json group_json(const DeviceMesh& mesh, GroupKind group) {
  const bool shard = group == GroupKind::shard;
  return {{"first", 0},
          {"stride", shard ? 1 : mesh.shard},
          {"size", shard ? mesh.shard : mesh.replicate}};
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
                {"in_place", true}});
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
    for (const BufferKind kind : {BufferKind::all_gather_output, BufferKind::reduce_scatter_input,
                                  BufferKind::unsharded, BufferKind::unsharded_grad}) {
      const auto it = peak.by_kind.find(kind);
      entry[std::string(to_text(kind))] = it == peak.by_kind.end() ? 0 : it->second.value;
    }
    out[std::string(to_text(phase))] = entry;
  }
  return out;
}

/// The operations that traces name; casts and bookkeeping are ours alone.
bool in_order_list(const Op& op) {
  if (const auto* compute = std::get_if<Compute>(&op.work)) {
    return !compute->gemms.empty();
  }
  return is_collective(op) || std::holds_alternative<CopyIn>(op.work) ||
         std::holds_alternative<CopyOut>(op.work) || std::holds_alternative<ChunkCat>(op.work);
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
    if (schedule[id].stream == stream && in_order_list(schedule[id])) {
      return id;
    }
  }
  return std::nullopt;
}

Json order_json(const Schedule& schedule) {
  Json out = Json::array();
  for (const Op& op : schedule.ops) {
    const std::string when = fmt::format("{}{}", to_text(op.phase).front(), op.micro);
    for (const OpId edge : op.after) {
      if (const auto named = named_before(schedule, edge)) {
        out.push_back(fmt::format("{} {}: wait {}/{}", when, to_text(op.stream),
                                  to_text(schedule[*named].stream),
                                  operation_text(schedule, schedule[*named])));
      }
    }
    const auto* release = std::get_if<Free>(&op.work);
    if (release != nullptr && schedule[release->buffer].kind == BufferKind::unsharded) {
      out.push_back(fmt::format("{} host: free_unsharded {}", when, schedule.plan[op.unit].name));
    } else if (in_order_list(op)) {
      out.push_back(
          fmt::format("{} {}: {}", when, to_text(op.stream), operation_text(schedule, op)));
    }
  }
  return out;
}

struct Traffic {
  int count = 0;
  Bytes bytes;
};

std::string traffic_text(const Schedule& schedule) {
  std::map<std::string, Traffic> kinds;
  for (const Op& op : schedule.ops) {
    if (is_collective(op)) {
      Traffic& traffic = kinds[fmt::format("{:<8} {}", to_text(op.phase), name_of(op))];
      traffic.count += 1;
      traffic.bytes += cost_bytes(schedule, op);
    }
  }
  std::string out = "Collectives a step (full buffers)\n";
  for (const auto& [kind, traffic] : kinds) {
    out += fmt::format("  {:<24} {:>5} x  {:>12} in all\n", kind, traffic.count,
                       to_text(traffic.bytes));
  }
  return kinds.empty() ? "Collectives a step: none, a shard group of one copies locally\n" : out;
}

std::string memory_text(const Schedule& schedule) {
  const MemoryReport memory = memory_report(schedule);
  std::string out = "Memory a rank, without activations and logits\n";
  out += fmt::format("  {:<34} {:>12}\n", "master shards and their gradients",
                     to_text(memory.resident));
  out += fmt::format("  {:<34} {:>12}\n", "Adam's two moments", to_text(memory.optimizer));
  out += fmt::format("  {:<34} {:>12}\n", "transient buffers, most alive",
                     to_text(memory.transient_live));
  out += fmt::format("  {:<34} {:>12}  (pools do not share memory, as PyTorch's)\n",
                     "transient pools as laid out", to_text(memory.arenas - memory.resident));
  out += fmt::format("  {:<34} {:>12}\n", "in all", to_text(memory.total()));
  for (const auto& [phase, peak] : memory_by_phase(schedule)) {
    out += fmt::format("  {:<8} peak {} at {}\n", to_text(phase), to_text(peak.total), peak.at);
  }
  return out;
}

/// Runs of units that differ in name alone are one line.
std::string units_text(const Schedule& schedule) {
  const auto& units = schedule.plan.units;
  std::string out = fmt::format("{} units\n  {:<44} {:>15} {:>15} {:>9}  after forward\n",
                                units.size(), "unit", "elements", "a shard", "padding");
  for (std::size_t i = 0; i < units.size();) {
    std::size_t end = i + 1;
    while (end < units.size() && units[end].numel == units[i].numel &&
           units[end].padded_numel == units[i].padded_numel &&
           units[end].reshard_after_forward == units[i].reshard_after_forward) {
      ++end;
    }
    const FsdpUnit& unit = units[i];
    std::string name =
        end == i + 1 ? unit.name : fmt::format("{} (and {} alike)", unit.name, end - i - 1);
    if (name.size() > 44) {
      name = "..." + name.substr(name.size() - 41);
    }
    const double padding = 100.0 * static_cast<double>(unit.padded_numel - unit.numel) /
                           static_cast<double>(std::max<std::int64_t>(1, unit.numel));
    out += fmt::format("  {:<44} {:>15} {:>15} {:>7.2f} %  {}\n", name, unit.numel,
                       unit.shard_numel, padding, to_text(unit.reshard_after_forward));
    i = end;
  }
  return out;
}

}  // namespace

std::string plan_json(const Schedule& schedule) {
  const MemoryReport memory = memory_report(schedule);
  const Json out{{"policy", schedule.policy},
                 {"units", units_json(schedule)},
                 {"collectives", collectives_json(schedule)},
                 {"memory", memory_json(schedule)},
                 {"memory_per_rank",
                  {{"resident_bytes", memory.resident.value},
                   {"optimizer_bytes", memory.optimizer.value},
                   {"transient_live_bytes", memory.transient_live.value},
                   {"arenas_bytes", memory.arenas.value},
                   {"total_bytes", memory.total().value},
                   {"without", "activations and logits"}}},
                 {"order", order_json(schedule)}};
  return out.dump(1);
}

std::string plan_text(const Schedule& schedule, const ModelSpec& model) {
  const DeviceMesh& mesh = schedule.plan.mesh;
  std::string out = fmt::format("{}: {} parameters on {} rank{}, {}\n",
                                model.name.empty() ? "model" : model.name, parameter_total(model),
                                mesh.world(), mesh.world() == 1 ? "" : "s", schedule.policy);
  if (!model.scaling.empty()) {
    out += fmt::format("scaled: {}\n", model.scaling);
  }
  return out + "\n" + units_text(schedule) + "\n" + traffic_text(schedule) + "\n" +
         memory_text(schedule);
}

}  // namespace fsdp
