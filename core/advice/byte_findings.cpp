#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/advice/alignment.hpp"
#include "core/advice/bill.hpp"
#include "core/advice/detectors.hpp"
#include "core/plan/path_patterns.hpp"

namespace fsdp::detect {
namespace {

/// Share of a unit's elements that padding must add to be told: below it the gather's time changes
/// by less than what two measurements of it differ by.
constexpr double padding_worth_telling = 0.05;

/// A rank's part of a parameter when `ranks` ranks share it.
Bytes shard_bytes(const UnitParameter& parameter, std::int64_t ranks, DType dtype) {
  const std::int64_t extent = parameter.shape[static_cast<std::size_t>(parameter.shard_dim)];
  return bytes_of((extent + ranks - 1) / ranks * (parameter.numel / extent), dtype);
}

double padding_of(const FsdpUnit& unit) {
  return static_cast<double>(unit.padded_numel - unit.numel) /
         static_cast<double>(std::max<std::int64_t>(1, unit.numel));
}

const UnitParameter& most_padded(const FsdpUnit& unit) {
  return *std::max_element(unit.parameters.begin(), unit.parameters.end(),
                           [](const UnitParameter& a, const UnitParameter& b) {
                             return a.padded_numel - a.numel < b.padded_numel - b.numel;
                           });
}

/// Fewer ranks that share a unit, more copies.
std::string smaller_group(const DeviceMesh& mesh, int ranks) {
  return fmt::format("mesh: {{replicate: {}, shard: {}}}", mesh.world() / ranks, ranks);
}

std::string remedy_for_padding(const WrapPlan& plan, const UnitParameter& parameter) {
  const std::int64_t ranks = plan.mesh.shard;
  for (std::size_t dim = 1; dim < parameter.shape.size(); ++dim) {
    if (parameter.shape[dim] % ranks == 0) {
      return fmt::format("shard_dims: {{'{}': {}}}", in_all_layers(parameter.path), dim);
    }
  }
  const std::int64_t fits = std::gcd(parameter.shape.front(), ranks);
  if (fits > 1) {
    return smaller_group(plan.mesh, static_cast<int>(fits));
  }
  return fmt::format("no dimension of '{}' divides by {}; give it one that does", parameter.path,
                     ranks);
}

/// True when every parameter of the unit starts and ends on a vector with `ranks` ranks.
bool is_aligned_with(const WrapPlan& plan, const FsdpUnit& unit, std::int64_t ranks) {
  if (plan.policy.profile == Profile::fsdp1) {
    const std::int64_t shard = (unit.padded_numel + ranks - 1) / ranks;
    return bytes_of(shard, unit.gather_dtype).value % vector_bytes == 0;
  }
  return std::all_of(
      unit.parameters.begin(), unit.parameters.end(), [&](const UnitParameter& parameter) {
        return shard_bytes(parameter, ranks, parameter.gather_dtype).value % vector_bytes == 0;
      });
}

/// The largest smaller group that leaves no part misaligned, if there is one.
std::string remedy_for_alignment(const WrapPlan& plan, const FsdpUnit& unit) {
  for (int ranks = plan.mesh.shard / 2; ranks > 1; --ranks) {
    if (plan.mesh.shard % ranks == 0 && is_aligned_with(plan, unit, ranks)) {
      return smaller_group(plan.mesh, ranks);
    }
  }
  return fmt::format("sizes whose share of {} ranks is a multiple of {} bytes", plan.mesh.shard,
                     vector_bytes);
}

bool is_frozen(const ModelSpec& model, const std::string& path) {
  const Module* module = find_module(model.root, parent_path(path));
  return module != nullptr && std::any_of(module->parameters.begin(), module->parameters.end(),
                                          [&](const Parameter& parameter) {
                                            return parameter.name == last_component(path) &&
                                                   !parameter.trainable;
                                          });
}

}  // namespace

void padded_gather(const PlanEvidence& evidence, Found& out) {
  const WrapPlan& plan = evidence.schedule.plan;
  BillByRun padding(evidence);
  for (std::size_t i = 0; i < evidence.schedule.ops.size(); ++i) {
    const Op& op = evidence.schedule.ops[i];
    if (!is_collective(op) || padding_of(plan[op.unit]) < padding_worth_telling) {
      continue;
    }
    const FsdpUnit& unit = plan[op.unit];
    padding.add({static_cast<std::int32_t>(i)},
                static_cast<double>(unit.padded_numel - unit.numel) /
                    static_cast<double>(unit.padded_numel));
  }
  for (const auto& [run, bill] : padding.bills()) {
    const FsdpUnit& unit = plan[run.first()];
    const UnitParameter& worst = most_padded(unit);
    out.push_back(bill.on(
        {.id = "padded_gather",
         .unit = to_text(run),
         .parameter = worst.path,
         .what = fmt::format("padding makes {} elements out of {} (+{:.0f} %); '{}' alone grows "
                             "from {} to {}",
                             unit.padded_numel, unit.numel, 100 * padding_of(unit), worst.path,
                             worst.numel, worst.padded_numel),
         .why =
             fmt::format("each of {} ranks gets as many rows of dimension {} as the fullest one, "
                         "and the gather, the copies and the reduction move them all",
                         plan.mesh.shard, worst.shard_dim),
         .bytes = {},
         .time = {},
         .remedy = remedy_for_padding(plan, worst)}));
  }
}

void misaligned_shard(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  BillByRun misaligned(evidence);
  std::vector<const CollectiveAlignment*> of_unit(schedule.plan.units.size());
  const std::vector<CollectiveAlignment> report = alignment_report(schedule);
  for (const CollectiveAlignment& collective : report) {
    if (!collective.aligned() && of_unit[collective.unit.index()] == nullptr) {
      of_unit[collective.unit.index()] = &collective;
      misaligned.add(collective.op);
    }
  }
  for (const auto& [run, bill] : misaligned.bills()) {
    const CollectiveAlignment& first = *of_unit[run.first().index()];
    const FsdpUnit& unit = schedule.plan[run.first()];
    Finding finding = bill.on(
        {.id = "misaligned_shard",
         .unit = to_text(run),
         .parameter =
             first.parameters.empty()
                 ? std::string()
                 : unit.parameters[static_cast<std::size_t>(first.parameters[0].index)].path,
         .what = fmt::format("a rank's part of the {} of {} is {} bytes long, {} beyond a multiple "
                             "of {}, and {} parameters in it start off one",
                             name_of(schedule[first.op]), to_text(run), first.part.value,
                             first.beyond.value, vector_bytes, first.parameters.size()),
         .why = fmt::format("the copies fall back from 16-byte vectors to narrower ones for it; "
                            "padding the pieces would add {} a rank",
                            to_text(first.padding)),
         .bytes = {},
         .time = {},
         .remedy = remedy_for_alignment(schedule.plan, unit)});
    finding.time.reset();  // what a narrower copy costs is not on any curve
    out.push_back(std::move(finding));
  }
}

void wide_reduction(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  Bill bill(evidence);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (!is_collective(op) || std::holds_alternative<AllGather>(op.work)) {
      continue;
    }
    const FsdpUnit& unit = schedule.plan[op.unit];
    const auto narrow = static_cast<double>(element_bytes(unit.param_dtype));
    const auto wide = static_cast<double>(element_bytes(unit.reduce_dtype));
    if (wide > narrow) {
      bill.add({static_cast<std::int32_t>(i)}, 1 - narrow / wide);
    }
  }
  if (bill.count() == 0) {
    return;
  }
  const FsdpUnit& unit = schedule.plan.units.front();
  out.push_back(
      bill.on({.id = "wide_reduction",
               .unit = {},
               .parameter = {},
               .what = fmt::format("gradients are computed in {} and reduced in {}",
                                   to_text(unit.param_dtype), to_text(unit.reduce_dtype)),
               .why = fmt::format(
                   "a reduction moves and holds {} times the bytes of its gradients. That "
                   "buys sums over {} ranks without the rounding of {}; many keep it, and "
                   "a narrower sum is a change of numerics to be tried with the loss in view",
                   element_bytes(unit.reduce_dtype) / element_bytes(unit.param_dtype),
                   schedule.plan.mesh.world(), to_text(unit.param_dtype)),
               .bytes = {},
               .time = {},
               .remedy = fmt::format("reduce_dtype: {}", to_text(unit.param_dtype))}));
}

/// FSDP1 reduces the whole flat gradient, zeros for what is frozen included. The layout has given
/// frozen parameters beside trainable ones a gradient; the model says which they are.
void reduced_frozen(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  if (schedule.plan.policy.profile != Profile::fsdp1) {
    return;
  }
  BillByRun frozen(evidence);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (!is_collective(op) || std::holds_alternative<AllGather>(op.work)) {
      continue;
    }
    const FsdpUnit& unit = schedule.plan[op.unit];
    std::int64_t still = 0;
    for (const UnitParameter& parameter : unit.parameters) {
      still += is_frozen(evidence.model, parameter.path) ? parameter.numel : 0;
    }
    if (still > 0 && still < unit.numel) {
      frozen.add({static_cast<std::int32_t>(i)},
                 static_cast<double>(still) / static_cast<double>(unit.padded_numel));
    }
  }
  for (const auto& [run, bill] : frozen.bills()) {
    out.push_back(bill.on(
        {.id = "reduced_frozen",
         .unit = to_text(run),
         .parameter = {},
         .what = fmt::format("{} has frozen parameters beside trainable ones", to_text(run)),
         .why = "FSDP1 reduces its flat gradient whole, with zeros where nothing is trained",
         .bytes = {},
         .time = {},
         .remedy = "wrap the frozen modules as units of their own"}));
  }
}

}  // namespace fsdp::detect
