#include "core/plan/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <unordered_map>

#include "core/model/releases.hpp"
#include "core/plan/parameter_layout.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

void number_modules(const Module& module, std::unordered_map<std::string, int>& order) {
  order.emplace(module.path, static_cast<int>(order.size()));
  for (const Module& child : module.children) {
    number_modules(child, order);
  }
}

Reshard unit_reshard(const FsdpPolicy& policy, const std::string& name, bool root, int ranks) {
  Reshard reshard = policy.reshard_after_forward;
  if (policy.profile == Profile::fsdp1) {
    const ShardingStrategy strategy = policy.fsdp1.sharding;
    const bool frees =
        strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
    return frees && !root ? Reshard::free() : Reshard::keep();
  }
  if (root) {
    // PyTorch leaves a root that was not told otherwise unsharded after forward (from 2.8 an
    // explicit True holds).
    const Reshard automatic = reshard == Reshard::free() ? Reshard::keep() : reshard;
    reshard = !policy.root_reshard   ? automatic
              : *policy.root_reshard ? Reshard::free()
                                     : Reshard::keep();
  } else if (const auto it = policy.reshard_units.find(name); it != policy.reshard_units.end()) {
    reshard = it->second;
  }
  if (reshard.to > 1 && ranks % reshard.to != 0) {
    throw UsageError(fmt::format(
        "policy.reshard_after_forward of unit '{}': groups of {} ranks do not divide the shard "
        "group of {}",
        name, reshard.to, ranks));
  }
  return reshard.to == ranks && reshard.to > 1 ? Reshard::free() : reshard;
}

/// Where users of one tied weight fall into two units, FSDP1 without use_orig_params and FSDP2
/// before it checked shard the weight twice, untied; later releases refuse.
bool unties(const FsdpPolicy& policy) {
  return policy.profile == Profile::fsdp1 ? !policy.fsdp1.use_orig_params
                                          : policy.version < since::shared_weights_refused;
}

class Layout {
 public:
  Layout(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh)
      : model_(model), policy_(policy), rules_(policy, mesh.shard), ranks_(mesh.shard) {
    number_modules(model.root, order_);
  }

  void add(const std::vector<std::string>& group) {
    FsdpUnit unit;
    unit.modules = group;
    unit.name = unit_name(group);
    unit.module_order = order_.at(group.front());
    refuse_late(group);
    for (const std::string& path : group) {
      if (!wrapped_.insert(path).second) {
        throw UsageError(fmt::format("policy.wrap: module '{}' stands in two units", path));
      }
      unit.module_order = std::min(unit.module_order, order_.at(path));
    }
    for (const std::string& path : group) {
      collect(*find_module(model_.root, path), unit, path);
    }
    if (unit.parameters.empty()) {
      return;
    }
    refuse_containers(group);
    rules_.finish(unit);
    unit.reshard_after_forward = unit_reshard(policy_, unit.name, group.front().empty(), ranks_);
    const UnitId id{static_cast<std::int32_t>(out_.units.size())};
    for (const std::string& path : group) {
      out_.module_units.emplace(path, id);
    }
    out_.units.push_back(std::move(unit));
  }

  UnitLayout take() { return std::move(out_); }

 private:
  static std::string unit_name(const std::vector<std::string>& group) {
    std::string name;
    for (const std::string& path : group) {
      name += (name.empty() ? "" : "+") + (path.empty() ? std::string("root") : path);
    }
    return name;
  }

  /// FSDP2 goes through children first, FSDP1 through a module's own parameters first.
  void collect(const Module& module, FsdpUnit& unit, const std::string& top) {
    if (module.path != top && wrapped_.contains(module.path)) {
      return;
    }
    if (policy_.profile == Profile::fsdp1) {
      own(module, unit);
    }
    for (const Module& child : module.children) {
      collect(child, unit, top);
    }
    if (policy_.profile == Profile::fsdp2) {
      own(module, unit);
    }
  }

  void own(const Module& module, FsdpUnit& unit) {
    const UnitId id{static_cast<std::int32_t>(out_.units.size())};
    for (const Parameter& parameter : module.parameters) {
      const std::string path = join_path(module.path, parameter.name);
      if (rules_.ignores(path)) {
        continue;
      }
      const std::string& owner = parameter.tied_to.empty() ? path : parameter.tied_to;
      const ParameterPlace next{id, static_cast<int>(unit.parameters.size())};
      auto [it, added] = owned_.try_emplace(owner, next);
      if (!added && it->second.unit != id && !shares_flat_view()) {
        if (!unties(policy_)) {
          refuse_tie(path, it->second);
        }
        it->second = next;
        added = true;
      }
      if (added) {
        unit.parameters.push_back(rules_.sharded(path, parameter, module));
      }
      out_.parameters.emplace(path, it->second);
    }
  }

  /// A unit takes what no earlier one took, so that one around a module must come behind it.
  void refuse_late(const std::vector<std::string>& group) const {
    for (const std::string& path : group) {
      for (std::string around = path; !around.empty();) {
        around = parent_path(around);
        if (wrapped_.contains(around)) {
          throw UsageError(fmt::format(
              "policy.wrap: '{}' comes behind '{}', whose unit has taken its parameters already; "
              "name inner modules before the ones around them",
              path, around));
        }
      }
    }
  }

  /// Their hooks never run: fully_shard refuses them, and FSDP1 warns and then computes with
  /// shards.
  void refuse_containers(const std::vector<std::string>& group) const {
    for (const std::string& path : group) {
      if (const Module& module = *find_module(model_.root, path); is_container(module)) {
        throw UsageError(fmt::format(
            "policy.wrap: '{}' is a {}, which has no forward before which its parameters could be "
            "gathered; wrap its elements, or the module around it",
            path, module.class_name));
      }
    }
  }

  /// FSDP1 with use_orig_params leaves the second name with a view of the first unit's parameter,
  /// which is whole only when nothing is sharded.
  bool shares_flat_view() const {
    return policy_.profile == Profile::fsdp1 && policy_.fsdp1.use_orig_params && ranks_ == 1;
  }

  [[noreturn]] void refuse_tie(const std::string& path, const ParameterPlace& place) const {
    throw UsageError(fmt::format(
        "policy.wrap: '{}' is tied to '{}', which stands in another unit; put both "
        "modules into one group (PyTorch refuses this as well)",
        path,
        out_.units[place.unit.index()].parameters[static_cast<std::size_t>(place.index)].path));
  }

  const ModelSpec& model_;
  const FsdpPolicy& policy_;
  ParameterLayout rules_;
  int ranks_;
  std::unordered_map<std::string, int> order_;
  std::set<std::string> wrapped_;
  std::unordered_map<std::string, ParameterPlace> owned_;  // by the path of the storage's owner
  UnitLayout out_;
};

void refuse_several_modules(const ModuleGroups& groups) {
  for (const auto& group : groups) {
    if (group.size() > 1) {
      throw UsageError(fmt::format(
          "policy.wrap: FSDP1 wraps one module at a time and cannot join '{}' and '{}'; "
          "use profile fsdp2, or wrap a module that holds both",
          group[0], group[1]));
    }
  }
}

}  // namespace

UnitLayout layout_units(const ModelSpec& model, const ModuleGroups& groups,
                        const FsdpPolicy& policy, const DeviceMesh& mesh) {
  if (policy.profile == Profile::fsdp1) {
    refuse_several_modules(groups);
  }
  Layout layout(model, policy, mesh);
  for (const auto& group : groups) {
    layout.add(group);
  }
  layout.add({""});
  return layout.take();
}

}  // namespace fsdp
