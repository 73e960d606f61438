#include "core/plan/wrap_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/plan/layout.hpp"
#include "core/plan/trace.hpp"
#include "core/plan/wrap_rules.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// Places of the units in order of first use; units that never run keep their order behind the
/// others.
std::vector<UnitId> order_of_use(const std::vector<TraceStep>& trace, std::size_t units) {
  std::vector<std::int32_t> by_use(units);
  std::iota(by_use.begin(), by_use.end(), 0);
  std::vector<std::size_t> first(units, trace.size());
  for (std::size_t i = trace.size(); i-- > 0;) {
    if (trace[i].kind == TraceStep::Kind::enter) {
      first[trace[i].unit.index()] = i;
    }
  }
  std::stable_sort(by_use.begin(), by_use.end(), [&](std::int32_t a, std::int32_t b) {
    return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
  });
  std::vector<UnitId> place(units);
  for (std::size_t i = 0; i < units; ++i) {
    place[static_cast<std::size_t>(by_use[i])] = {static_cast<std::int32_t>(i)};
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

WrapPlan plan_units(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh,
                    const Batch& batch) {
  if (mesh.shard < 1 || mesh.replicate < 1) {
    throw UsageError(
        fmt::format("mesh: {} x {} ranks; both must be at least 1", mesh.replicate, mesh.shard));
  }
  UnitLayout layout = layout_units(model, module_groups(model, policy.wrap), policy, mesh);
  check_exceptions(policy, layout.units);
  WrapPlan plan{.mesh = mesh, .units = {}, .trace = trace_forward(model, layout, batch)};
  const std::vector<UnitId> place = order_of_use(plan.trace, layout.units.size());
  plan.units.resize(layout.units.size());
  for (std::size_t i = 0; i < layout.units.size(); ++i) {
    plan.units[place[i].index()] = std::move(layout.units[i]);
  }
  for (TraceStep& step : plan.trace) {
    step.unit = place[step.unit.index()];
  }
  return plan;
}

}  // namespace fsdp
