#include "core/schedule/prefetch_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

using Lists = std::vector<std::vector<UnitId>>;

UnitId unit_named(const WrapPlan& plan, const std::string& name, std::string_view key) {
  const auto it = std::find_if(plan.units.begin(), plan.units.end(),
                               [&](const FsdpUnit& unit) { return unit.name == name; });
  if (it == plan.units.end()) {
    throw UsageError(fmt::format("policy.prefetch.{}: there is no unit '{}'", key, name));
  }
  return {static_cast<std::int32_t>(it - plan.units.begin())};
}

Lists named_lists(const WrapPlan& plan, const PrefetchLists& names, std::string_view key) {
  Lists out(plan.units.size());
  for (const auto& [unit, targets] : names) {
    auto& list = out[unit_named(plan, unit, key).index()];
    for (const std::string& target : targets) {
      list.push_back(unit_named(plan, target, key));
    }
  }
  return out;
}

/// The next `depth` units in the direction of `step`, for every unit.
Lists neighbours(const WrapPlan& plan, int depth, int step) {
  const int count = static_cast<int>(plan.units.size());
  Lists out(plan.units.size());
  for (int unit = 0; unit < count; ++unit) {
    for (int d = 1; d <= depth; ++d) {
      const int target = unit + step * d;
      if (target >= 0 && target < count) {
        out[static_cast<std::size_t>(unit)].push_back({target});
      }
    }
  }
  return out;
}

Lists lists(const WrapPlan& plan, const Prefetch& prefetch, std::string_view key, int smallest,
            int step) {
  if (const auto* names = std::get_if<PrefetchLists>(&prefetch)) {
    return named_lists(plan, *names, key);
  }
  const int depth = std::get<int>(prefetch);
  if (depth < smallest) {
    throw UsageError(fmt::format("policy.prefetch.{}: depth {}; at least {}, PyTorch's default",
                                 key, depth, smallest));
  }
  return depth == smallest ? Lists(plan.units.size()) : neighbours(plan, depth, step);
}

}  // namespace

Lists forward_prefetch_lists(const WrapPlan& plan, const Prefetch& prefetch) {
  return lists(plan, prefetch, "forward", 0, 1);
}

Lists backward_prefetch_lists(const WrapPlan& plan, const Prefetch& prefetch) {
  return lists(plan, prefetch, "backward", 1, -1);
}

}  // namespace fsdp
