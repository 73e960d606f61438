#include "core/plan/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

UnitParameter sharded(const std::string& path, const Parameter& parameter, int ranks) {
  const std::int64_t numel = parameter.numel();
  const std::int64_t first = parameter.shape.empty() ? 1 : parameter.shape.front();
  const std::int64_t rows = (first + ranks - 1) / ranks;
  const std::int64_t shard = first == 0 ? 0 : rows * (numel / first);
  return {.path = path,
          .shape = parameter.shape,
          .dtype = parameter.dtype,
          .trainable = parameter.trainable,
          .numel = numel,
          .shard_numel = shard,
          .padded_numel = shard * ranks};
}

void number_modules(const Module& module, std::map<std::string, int>& order) {
  order.emplace(module.path, static_cast<int>(order.size()));
  for (const Module& child : module.children) {
    number_modules(child, order);
  }
}

Reshard unit_reshard(const FsdpPolicy& policy, const std::string& name, bool root, int ranks) {
  Reshard reshard = policy.reshard_after_forward;
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
  return reshard.to == ranks && reshard.to > 1 ? Reshard::free() : reshard;
}

class Layout {
 public:
  Layout(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh)
      : model_(model), policy_(policy), ranks_(mesh.shard) {
    number_modules(model.root, order_);
  }

  void add(const std::vector<std::string>& group) {
    FsdpUnit unit;
    unit.modules = group;
    unit.name = unit_name(group);
    unit.module_order = order_.at(group.front());
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
    finish(unit);
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

  void collect(const Module& module, FsdpUnit& unit, const std::string& top) {
    if (module.path != top && wrapped_.contains(module.path)) {
      return;
    }
    for (const Module& child : module.children) {
      collect(child, unit, top);
    }
    const UnitId id{static_cast<std::int32_t>(out_.units.size())};
    for (const Parameter& parameter : module.parameters) {
      const std::string path = join_path(module.path, parameter.name);
      const std::string& owner = parameter.tied_to.empty() ? path : parameter.tied_to;
      const auto [it, added] = out_.parameters.try_emplace(
          owner, ParameterPlace{id, static_cast<int>(unit.parameters.size())});
      if (added) {
        unit.parameters.push_back(sharded(path, parameter, ranks_));
      } else if (it->second.unit != id) {
        throw UsageError(
            fmt::format("policy.wrap: '{}' is tied to '{}', which stands in another unit; put both "
                        "modules into one group "
                        "(PyTorch refuses this as well)",
                        path,
                        out_.units[it->second.unit.index()]
                            .parameters[static_cast<std::size_t>(it->second.index)]
                            .path));
      }
    }
  }

  void finish(FsdpUnit& unit) const {
    for (const UnitParameter& parameter : unit.parameters) {
      unit.numel += parameter.numel;
      unit.shard_numel += parameter.shard_numel;
      unit.padded_numel += parameter.padded_numel;
      if (parameter.dtype != unit.parameters.front().dtype) {
        throw UsageError(fmt::format(
            "unit {}: '{}' is {} and '{}' is {}; mixed dtypes in one unit are not in this release",
            unit.name, parameter.path, to_text(parameter.dtype), unit.parameters.front().path,
            to_text(unit.parameters.front().dtype)));
      }
    }
    unit.master_dtype = unit.parameters.front().dtype;
    unit.param_dtype = policy_.param_dtype.value_or(unit.master_dtype);
    // Up to 2.14 an unset reduce dtype means the gradient's own, which is the compute dtype.
    unit.reduce_dtype = policy_.reduce_dtype.value_or(unit.param_dtype);
    unit.reshard_after_forward =
        unit_reshard(policy_, unit.name, unit.modules.front().empty(), ranks_);
  }

  const ModelSpec& model_;
  const FsdpPolicy& policy_;
  int ranks_;
  std::map<std::string, int> order_;
  std::set<std::string> wrapped_;
  UnitLayout out_;
};

}  // namespace

UnitLayout layout_units(const ModelSpec& model, const ModuleGroups& groups,
                        const FsdpPolicy& policy, const DeviceMesh& mesh) {
  Layout layout(model, policy, mesh);
  for (const auto& group : groups) {
    layout.add(group);
  }
  layout.add({""});
  return layout.take();
}

}  // namespace fsdp
