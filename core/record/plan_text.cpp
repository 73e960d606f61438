#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/advice/unit_runs.hpp"
#include "core/record/plan_document.hpp"

namespace fsdp {
namespace {

/// Long module paths keep their end, which tells them apart.
std::string shortened(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : "..." + name.substr(name.size() - (width - 3));
}

std::string heading_of(const FsdpPolicy& policy) {
  return fmt::format("{} of PyTorch {}: {}", to_text(policy.profile), to_text(policy.version),
                     to_text(policy));
}

std::string heading(const PlanReport& report) {
  const WrapPlan& plan = report.schedule.plan;
  const ModelSpec& model = report.model;
  const DeviceMesh& mesh = plan.mesh;
  const std::string replicas =
      mesh.replicate == 1 ? ""
                          : fmt::format(", {} replicas of {} shards", mesh.replicate, mesh.shard);
  std::string out =
      fmt::format("{}: {} parameters on {} rank{}{}\n{}\n",
                  model.name.empty() ? "model" : model.name, parameter_total(model), mesh.world(),
                  mesh.world() == 1 ? "" : "s", replicas, heading_of(plan.policy));
  out += model.scaling.empty() ? "" : fmt::format("scaled: {}\n", model.scaling);
  const ModelFlops flops = model_flops(model, plan.batch);
  out +=
      fmt::format("{} tokens a rank and micro-batch: {:.4g} TFLOP forward, {:.4g} backward",
                  plan.batch.tokens(), flops.forward.value * 1e-12, flops.backward.value * 1e-12);
  if (plan.policy.activation_checkpointing == Checkpointing::full) {
    out += fmt::format(", {:.4g} again for checkpoints", flops.recompute.value * 1e-12);
  }
  return out + "\n";
}

std::string units_text(const WrapPlan& plan) {
  constexpr std::size_t width = 44;
  std::string out = fmt::format("{} unit{}\n  {:<{}} {:>15} {:>15} {:>9}  after forward\n",
                                plan.units.size(), plan.units.size() == 1 ? "" : "s", "unit", width,
                                "elements", "a shard", "padding");
  for (const UnitRun& run : unit_runs(plan)) {
    const FsdpUnit& unit = plan[run.first()];
    const double padding = 100.0 * static_cast<double>(unit.padded_numel - unit.numel) /
                           static_cast<double>(std::max<std::int64_t>(1, unit.numel));
    out += fmt::format("  {:<{}} {:>15} {:>15} {:>7.2f} %  {}\n", shortened(to_text(run), width),
                       width, unit.numel, unit.shard_numel, padding,
                       to_text(unit.reshard_after_forward));
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

std::string row(std::string_view what, Bytes bytes, const std::string& note = "") {
  return fmt::format("  {:<42} {:>12}{}{}\n", what, to_text(bytes), note.empty() ? "" : "  ", note);
}

/// Pools follow streams; people know the profile's names of these.
std::string_view pool_text(Pool pool, Profile profile) { return to_text(stream_of(pool), profile); }

std::string memory_text(const PlanReport& report) {
  const Schedule& schedule = report.schedule;
  const MemoryBudget& budget = report.memory;
  const MemoryReport& fsdp = budget.fsdp;
  const MemoryNeed& need = budget.chosen();
  std::string out = fmt::format("Memory a rank: {}\n", verdict(budget));
  out += row("master shards and their gradients", fsdp.resident);
  out += row("Adam's two moments", fsdp.optimizer);
  out += row("FSDP's buffers, most alive at once", fsdp.transient_live);
  for (const auto& [phase, peak] : memory_by_phase(schedule)) {
    out += row(fmt::format("  in {}", to_text(phase)), peak.total, "at " + peak.at);
  }
  out += row("FSDP's buffers, reserved by pool", budget.reserved_transient(),
             "pools do not share memory");
  for (int pool = 0; pool < pool_count; ++pool) {
    const PoolUse& use = fsdp.pools[static_cast<std::size_t>(pool)];
    if (use.reserved.value > 0 && !is_persistent(static_cast<Pool>(pool))) {
      out +=
          row(fmt::format("  {}", pool_text(static_cast<Pool>(pool), schedule.plan.policy.profile)),
              use.reserved, fmt::format("{} allocated", to_text(use.live)));
    }
  }
  if (fsdp.largest.valid()) {
    const Buffer& largest = schedule[fsdp.largest];
    out += row("largest contiguous buffer", largest.bytes(),
               fmt::format("{} of {}", to_text(largest.kind), schedule.plan[largest.unit].name));
  }
  out += row("activations", need.activations,
             fmt::format("checkpointing: {}", to_text(need.checkpointing)));
  out += row("logits and their gradient", need.logits);
  out += row("in all", need.total);
  for (const MemoryNeed& other : budget.needs) {
    if (other.checkpointing != need.checkpointing) {
      out += row(fmt::format("  with activation_checkpointing: {}", to_text(other.checkpointing)),
                 other.total);
    }
  }
  if (budget.host.value > 0) {
    out += row("pinned host memory, beside it", budget.host);
  }
  return out;
}

std::string findings_text(const PlanReport& report) {
  if (report.findings.empty()) {
    return "Findings: none\n";
  }
  std::string out = fmt::format("Findings ({})\n", report.times);
  int number = 0;
  for (const Finding& finding : report.findings) {
    std::string cost = fmt::format("{} {}", to_text(finding.bytes), to_text(finding.cost));
    cost += finding.time ? fmt::format(", {} a step", to_text(*finding.time)) : "";
    out += fmt::format("  {}. {} ({})\n     {}\n     why: {}\n     do:  {}\n", ++number, finding.id,
                       cost, finding.what, finding.why, finding.remedy);
  }
  return out;
}

/// One line where all is well; else one a collective and run of units.
std::string alignment_text(const PlanReport& report) {
  const auto misaligned = std::count_if(report.alignment.begin(), report.alignment.end(),
                                        [](const auto& entry) { return !entry.aligned(); });
  if (misaligned == 0) {
    return fmt::format("Alignment: all parts of all collectives fall on {} bytes\n", vector_bytes);
  }
  Bytes padding;
  for (const CollectiveAlignment& entry : report.alignment) {
    padding += entry.padding * entry.count;
  }
  return fmt::format(
      "Alignment: {} of {} collectives have parts that do not fall on {} bytes; padding them would "
      "move {} more a rank and step (--json lists them)\n",
      misaligned, report.alignment.size(), vector_bytes, to_text(padding));
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  return heading(report) + "\n" + units_text(report.schedule.plan) + "\n" +
         traffic_text(report.schedule) + "\n" + memory_text(report) + "\n" + findings_text(report) +
         "\n" + alignment_text(report);
}

}  // namespace fsdp
