#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/advice/bill.hpp"
#include "core/advice/detectors.hpp"
#include "core/plan/path_patterns.hpp"

namespace fsdp::detect {
namespace {

/// A unit this many times the median of its plan takes as long to gather as so many others take to
/// compute: no prefetch of one unit hides it.
constexpr std::int64_t giant = 4;
/// A module of the root's that holds this share of the largest other unit deserves a unit.
constexpr double deserves_a_unit = 0.5;

bool is_root(const FsdpUnit& unit) { return unit.modules.front().empty(); }

UnitId id_of(std::size_t index) { return {static_cast<std::int32_t>(index)}; }

/// FSDP1 wraps single modules: the blocks, by a pattern, and what is large in the root.
std::string blocks_and_large_modules(const PlanEvidence& evidence, const FsdpUnit& root,
                                     std::int64_t largest_other) {
  std::vector<std::string> patterns;
  const auto add = [&patterns](const std::string& pattern) {
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) {
      patterns.push_back(pattern);
    }
  };
  for (const std::string& block : block_paths(evidence.model)) {
    add(in_all_layers(block));
  }
  for (const UnitParameter& parameter : root.parameters) {
    const std::string module = parent_path(parameter.path);
    if (!module.empty() && static_cast<double>(parameter.numel) >=
                               deserves_a_unit * static_cast<double>(largest_other)) {
      add(exactly(module));
    }
  }
  return fmt::format("wrap: {{name: '{}'}}", fmt::join(patterns, "|"));
}

void collect_lists(const Module& module, std::int64_t limit, std::vector<const Module*>& out) {
  const bool list = module.class_name == "ModuleList" || module.class_name == "ModuleDict";
  if (list && elements_below(module) > limit) {
    out.push_back(&module);
  }
  for (const Module& child : module.children) {
    collect_lists(child, limit, out);
  }
}

void collect_owners(const Module& module, std::map<std::string, std::string>& out) {
  for (const Parameter& parameter : module.parameters) {
    const std::string path = join_path(module.path, parameter.name);
    out.emplace(path, parameter.tied_to.empty() ? path : parameter.tied_to);
  }
  for (const Module& child : module.children) {
    collect_owners(child, out);
  }
}

}  // namespace

void one_unit(const PlanEvidence& evidence, Found& out) {
  const WrapPlan& plan = evidence.schedule.plan;
  if (plan.units.size() != 1 || plan.mesh.shard == 1) {
    return;
  }
  Bill bill(evidence);
  bill.add_collectives(id_of(0));
  out.push_back(bill.on(
      {.id = "one_unit",
       .unit = plan.units.front().name,
       .parameter = {},
       .what = "the whole model is one unit",
       .why = "its gather ends before the first product and its reduction begins after the last: "
              "nothing overlaps, and all parameters and gradients stand unsharded at once",
       .bytes = {},
       .time = {},
       .remedy = "wrap: {by: block}"}));
}

void largest_root(const PlanEvidence& evidence, Found& out) {
  const WrapPlan& plan = evidence.schedule.plan;
  const auto root = std::find_if(plan.units.begin(), plan.units.end(), is_root);
  if (plan.units.size() < 2 || plan.mesh.shard == 1 || root == plan.units.end()) {
    return;
  }
  std::int64_t other = 0;
  for (const FsdpUnit& unit : plan.units) {
    other = is_root(unit) ? other : std::max(other, unit.padded_numel);
  }
  if (root->padded_numel <= other) {
    return;
  }
  Bill bill(evidence);
  bill.add_collectives(id_of(static_cast<std::size_t>(root - plan.units.begin())));
  out.push_back(bill.on(
      {.id = "largest_root",
       .unit = root->name,
       .parameter = {},
       .what = fmt::format("the root is the largest unit: {} elements, the next {}",
                           root->padded_numel, other),
       .why = "the root is gathered before anything computes and reduced after everything has: "
              "neither overlaps, and its parameters stay unsharded for the whole step",
       .bytes = {},
       .time = {},
       .remedy = plan.policy.profile == Profile::fsdp2
                     ? "wrap: {by: titan}"
                     : blocks_and_large_modules(evidence, *root, other)}));
}

void size_remainder(const PlanEvidence& evidence, Found& out) {
  const WrapPlan& plan = evidence.schedule.plan;
  const auto* rule = std::get_if<WrapSize>(&plan.policy.wrap);
  if (rule == nullptr) {
    return;
  }
  std::vector<std::int64_t> sizes;
  for (const FsdpUnit& unit : plan.units) {
    sizes.push_back(unit.numel);
  }
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  const std::int64_t median = sizes[sizes.size() / 2];
  for (std::size_t i = 0; i < plan.units.size(); ++i) {
    const FsdpUnit& unit = plan.units[i];
    const auto nested = [&](const FsdpUnit& other) {
      return &other != &unit && is_within(other.modules.front(), unit.modules.front());
    };
    if (is_root(unit) || unit.numel < giant * median ||
        std::none_of(plan.units.begin(), plan.units.end(), nested)) {
      continue;
    }
    Bill bill(evidence);
    bill.add_collectives(id_of(i));
    out.push_back(bill.on(
        {.id = "size_remainder",
         .unit = unit.name,
         .parameter = {},
         .what = fmt::format("a unit of {} elements out of what is left of '{}', {} times the "
                             "threshold of {} and {} times the median unit",
                             unit.numel, unit.modules.front(), unit.numel / rule->min_params,
                             rule->min_params, unit.numel / std::max<std::int64_t>(1, median)),
         .why = "the size rule wraps no list, so what its layers leave adds up one module above; "
                "the unit is gathered at once and held while all units inside it run",
         .bytes = {},
         .time = {},
         .remedy = "wrap: {by: block}"}));
  }
}

void unwrappable_lists(const PlanEvidence& evidence, Found& out) {
  const FsdpPolicy& policy = evidence.schedule.plan.policy;
  const auto* preset = policy.preset ? std::get_if<AcceleratePreset>(&*policy.preset) : nullptr;
  if (preset == nullptr || preset->wrap != AccelerateWrap::size ||
      policy.profile != Profile::fsdp2) {
    return;
  }
  std::vector<const Module*> lists;
  collect_lists(evidence.model.root, preset->min_params, lists);
  for (const Module* list : lists) {
    out.push_back({.id = "unwrappable_list",
                   .unit = list->path,
                   .parameter = {},
                   .what = fmt::format("'{}' is a {} of {} elements, more than min_num_params = {}",
                                       list->path, list->class_name, elements_below(*list),
                                       preset->min_params),
                   .why = "accelerate's SIZE_BASED_WRAP calls fully_shard on it, which raises for "
                          "lists of modules: this run does not start; the plan leaves it out",
                   .bytes = {},
                   .time = {},
                   .remedy = "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"});
  }
}

void untied_weights(const PlanEvidence& evidence, Found& out) {
  const WrapPlan& plan = evidence.schedule.plan;
  if (plan.policy.profile != Profile::fsdp1 || !has_ties(evidence.model)) {
    return;
  }
  std::map<std::string, std::string> owners;
  collect_owners(evidence.model.root, owners);
  std::map<std::string, const FsdpUnit*> holders;  // of a storage
  for (const FsdpUnit& unit : plan.units) {
    for (const UnitParameter& parameter : unit.parameters) {
      const auto owner = owners.find(parameter.path);
      if (owner == owners.end()) {
        continue;
      }
      const auto [it, added] = holders.emplace(owner->second, &unit);
      if (added || it->second == &unit) {
        continue;
      }
      out.push_back(
          {.id = "untied_weights",
           .unit = unit.name,
           .parameter = parameter.path,
           .what = fmt::format("'{}' is tied to '{}', but they stand in the units {} and {}",
                               parameter.path, owner->second, unit.name, it->second->name),
           .why = "FSDP1 flattens a copy into each unit: the weights are silently untied and train "
                  "apart, and the copy is gathered and reduced as well",
           .bytes = bytes_of(parameter.padded_numel, parameter.gather_dtype),
           .time = {},
           .remedy = "wrap neither module alone, so that both stay in the root's unit"});
    }
  }
}

}  // namespace fsdp::detect
