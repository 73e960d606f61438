// What holds for the units of any model under any wrap rule.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/model/releases.hpp"
#include "tests/property/generators.hpp"

namespace fsdp {
namespace {

struct Storage {
  bool trainable = true;
  std::string module;  ///< of its first name
  int names = 0;
};

/// Storages by the path of the parameter that owns them.
void collect(const Module& module, std::map<std::string, Storage>& out) {
  for (const Parameter& parameter : module.parameters) {
    const std::string path = join_path(module.path, parameter.name);
    Storage& storage = out[parameter.tied_to.empty() ? path : parameter.tied_to];
    if (storage.names++ == 0) {
      storage.trainable = parameter.trainable;
      storage.module = module.path;
    }
  }
  for (const Module& child : module.children) {
    collect(child, out);
  }
}

std::string parent(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

/// By path of any name: the path of the owner.
void collect_owners(const Module& module, std::map<std::string, std::string>& out) {
  for (const Parameter& parameter : module.parameters) {
    const std::string path = join_path(module.path, parameter.name);
    out[path] = parameter.tied_to.empty() ? path : parameter.tied_to;
  }
  for (const Module& child : module.children) {
    collect_owners(child, out);
  }
}

/// Releases that shard a weight with names in two units once in each.
bool may_untie(const FsdpPolicy& policy) {
  return policy.profile == Profile::fsdp1 ? !policy.fsdp1.use_orig_params
                                          : policy.version < since::shared_weights_refused;
}

/// Ignored parameters are named one by one (see generators.cpp).
bool is_ignored(const FsdpPolicy& policy, const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    pattern += c == '.' ? std::string("\\.") : std::string(1, c);
  }
  return std::find(policy.ignored_params.begin(), policy.ignored_params.end(), pattern) !=
         policy.ignored_params.end();
}

RC_GTEST_PROP(Units, EveryParameterStandsInExactlyOne, ()) {
  const test::RandomPlan random = test::any_plan();
  const WrapPlan plan = test::planned(random);
  std::map<std::string, Storage> storages;
  collect(random.model.root, storages);
  std::map<std::string, std::string> owners;
  collect_owners(random.model.root, owners);
  std::map<std::string, int> places;
  for (const FsdpUnit& unit : plan.units) {
    RC_ASSERT(!unit.parameters.empty());
    std::set<std::string> inside;
    for (const UnitParameter& parameter : unit.parameters) {
      RC_ASSERT(owners.contains(parameter.path));
      RC_ASSERT(inside.insert(owners[parameter.path]).second);
      ++places[owners[parameter.path]];
    }
  }
  for (const auto& [path, storage] : storages) {
    if (storage.names > 1) {
      RC_ASSERT(places[path] <= (may_untie(plan.policy) ? storage.names : 1));
    } else {
      RC_ASSERT(places[path] == (is_ignored(plan.policy, path) ? 0 : 1));
    }
  }
}

RC_GTEST_PROP(Units, AParameterBelongsToTheInnermostWrappedModuleAroundIt, ()) {
  const test::RandomPlan random = test::any_plan();
  const WrapPlan plan = test::planned(random);
  std::map<std::string, std::string> unit_of_module;
  for (const FsdpUnit& unit : plan.units) {
    for (const std::string& module : unit.modules) {
      RC_ASSERT(unit_of_module.emplace(module, unit.name).second);
    }
  }
  std::map<std::string, Storage> storages;
  collect(random.model.root, storages);
  for (const FsdpUnit& unit : plan.units) {
    for (const UnitParameter& parameter : unit.parameters) {
      const auto storage = storages.find(parameter.path);
      if (storage == storages.end() || storage->second.names > 1) {
        continue;
      }
      std::string module = storage->second.module;
      while (!module.empty() && !unit_of_module.contains(module)) {
        module = parent(module);
      }
      RC_ASSERT(unit_of_module.at(module) == unit.name);
    }
  }
}

RC_GTEST_PROP(Units, ShardsOfAllRanksHoldEveryElement, ()) {
  const WrapPlan plan = test::planned(test::any_plan(Profile::fsdp2));
  const std::int64_t ranks = plan.mesh.shard;
  for (const FsdpUnit& unit : plan.units) {
    std::int64_t shards = 0;
    std::int64_t bytes = 0;
    for (const UnitParameter& parameter : unit.parameters) {
      const std::int64_t extent = parameter.shape[static_cast<std::size_t>(parameter.shard_dim)];
      const std::int64_t row = parameter.numel / extent;
      const std::int64_t rows = parameter.shard_numel / row;
      // Rows of all ranks, cut as torch.chunk cuts, are the rows of the parameter.
      std::int64_t covered = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        covered += std::clamp<std::int64_t>(extent - rank * rows, 0, rows);
      }
      RC_ASSERT(covered == extent);
      RC_ASSERT(rows * row == parameter.shard_numel);
      RC_ASSERT(parameter.padded_numel == parameter.shard_numel * ranks);
      RC_ASSERT(parameter.shard_dim == 0 || parameter.padded_numel == parameter.numel);
      RC_ASSERT((rows - 1) * ranks < extent);  // no more padding than one row a rank
      shards += parameter.shard_numel;
      bytes += bytes_of(parameter.shard_numel, parameter.gather_dtype).value;
    }
    RC_ASSERT(unit.shard_numel == shards);
    RC_ASSERT(unit.padded_numel == shards * ranks);
    RC_ASSERT(bytes_of(unit.gather_shard_numel, unit.gather_dtype).value == bytes);
  }
}

RC_GTEST_PROP(Units, AFlatParameterHoldsItsParametersInOrderAndApart, ()) {
  const WrapPlan plan = test::planned(test::any_plan(Profile::fsdp1));
  const bool aligned = plan.policy.fsdp1.use_orig_params;
  for (const FsdpUnit& unit : plan.units) {
    const std::int64_t step = aligned ? 16 / element_bytes(unit.param_dtype) : 1;
    std::int64_t end = 0;
    for (const UnitParameter& parameter : unit.parameters) {
      RC_ASSERT(parameter.flat_offset >= end);
      RC_ASSERT(parameter.flat_offset - end < step);
      RC_ASSERT(parameter.flat_offset % step == 0);
      end = parameter.flat_offset + parameter.numel;
    }
    RC_ASSERT(unit.padded_numel >= end);
    RC_ASSERT(unit.padded_numel - end < plan.mesh.shard);
    RC_ASSERT(unit.shard_numel * plan.mesh.shard == unit.padded_numel);
    RC_ASSERT(unit.gather_shard_numel == unit.shard_numel);
  }
}

RC_GTEST_PROP(Trace, UnitsAreEnteredAndLeftInTurns, ()) {
  const WrapPlan plan = test::planned(test::any_plan());
  std::vector<bool> inside(plan.units.size());
  for (const TraceStep& step : plan.trace) {
    if (step.kind == TraceStep::Kind::enter) {
      // A unit whose modules did not all run stays open; only one of several modules can.
      RC_ASSERT(!inside[step.unit.index()] || plan[step.unit].modules.size() > 1);
      inside[step.unit.index()] = true;
    } else if (step.kind == TraceStep::Kind::exit) {
      RC_ASSERT(inside[step.unit.index()]);
      inside[step.unit.index()] = false;
    }
  }
  for (std::size_t unit = 0; unit < inside.size(); ++unit) {
    RC_ASSERT(!inside[unit] || plan.units[unit].modules.size() > 1);
    RC_ASSERT(!inside[unit] || plan.policy.version < since::units_completed);
  }
}

RC_GTEST_PROP(Trace, AGradientAppearsOnceAndOnlyForWhatTrainsAndRuns, ()) {
  const test::RandomPlan random = test::any_plan();
  const WrapPlan plan = test::planned(random);
  std::set<std::string> called;
  for (const ModuleCall& call : random.model.calls) {
    called.insert(call.module);
  }
  std::vector<std::set<int>> delivered(plan.units.size());
  for (const TraceStep& step : plan.trace) {
    for (const int index : step.gradients) {
      RC_ASSERT(plan[step.unit].parameters[static_cast<std::size_t>(index)].trainable);
      RC_ASSERT(delivered[step.unit.index()].insert(index).second);
    }
  }
  std::map<std::string, Storage> storages;
  collect(random.model.root, storages);
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    for (std::size_t i = 0; i < plan.units[unit].parameters.size(); ++i) {
      const UnitParameter& parameter = plan.units[unit].parameters[i];
      const auto storage = storages.find(parameter.path);
      if (storage != storages.end() && storage->second.names == 1) {
        RC_ASSERT(delivered[unit].contains(static_cast<int>(i)) ==
                  (parameter.trainable && called.contains(storage->second.module)));
      }
    }
  }
}

}  // namespace
}  // namespace fsdp
