#include "core/plan/wrap_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/plan/layout.hpp"
#include "core/plan/presets.hpp"
#include "core/plan/trace.hpp"
#include "core/plan/wrap_rules.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// Places of the units: FSDP2's in order of first use, those that never run behind the others;
/// FSDP1's in the order of their modules.
std::vector<UnitId> order_of_units(const std::vector<TraceStep>& trace,
                                   const std::vector<FsdpUnit>& units, Profile profile) {
  std::vector<std::int32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::size_t> first(units.size(), trace.size());
  for (std::size_t i = trace.size(); i-- > 0 && profile == Profile::fsdp2;) {
    if (trace[i].kind == TraceStep::Kind::enter) {
      first[trace[i].unit.index()] = i;
    }
  }
  const auto key = [&](std::int32_t unit) {
    const auto i = static_cast<std::size_t>(unit);
    return std::pair(first[i], units[i].module_order);
  };
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  std::vector<UnitId> place(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = {static_cast<std::int32_t>(i)};
  }
  return place;
}

void check_exceptions(const FsdpPolicy& policy, const std::vector<FsdpUnit>& units) {
  for (const auto& [name, reshard] : policy.reshard_units) {
    const auto named = [&, &key = name](const FsdpUnit& unit) { return unit.name == key; };
    if (std::none_of(units.begin(), units.end(), named)) {
      throw UsageError(fmt::format("policy.reshard_units: there is no unit '{}'", name));
    }
  }
}

}  // namespace

WrapPlan plan_units(const ModelSpec& model, const FsdpPolicy& asked, const DeviceMesh& mesh,
                    const Batch& batch) {
  if (mesh.shard < 1 || mesh.replicate < 1) {
    throw UsageError(
        fmt::format("mesh: {} x {} ranks; both must be at least 1", mesh.replicate, mesh.shard));
  }
  const FsdpPolicy policy = apply_preset(model, asked, mesh);
  UnitLayout layout = layout_units(model, module_groups(model, policy.wrap), policy, mesh);
  if (layout.units.empty()) {
    throw UsageError(
        fmt::format("{} has no parameters to shard, or policy.ignored_params names all",
                    model.name.empty() ? "the model" : model.name));
  }
  check_exceptions(asked, layout.units);  // a preset may name one without parameters
  WrapPlan plan{.mesh = mesh,
                .policy = policy,
                .batch = batch,
                .units = {},
                .trace = trace_forward(model, layout, batch, policy)};
  const std::vector<UnitId> place = order_of_units(plan.trace, layout.units, policy.profile);
  plan.units.resize(layout.units.size());
  for (std::size_t i = 0; i < layout.units.size(); ++i) {
    plan.units[place[i].index()] = std::move(layout.units[i]);
  }
  for (TraceStep& step : plan.trace) {
    step.unit = step.unit.valid() ? place[step.unit.index()] : step.unit;
  }
  return plan;
}

}  // namespace fsdp
