// How units are laid out: which parameters it owns, in which order, and how each is cut over the
// ranks.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/wrap_plan.hpp"
#include "core/plan/wrap_rules.hpp"

namespace fsdp {

/// A parameter's place: unit and index in the unit.
struct ParameterPlace {
  UnitId unit;
  int index = 0;
};

/// Units of a model and where each parameter went.
struct UnitLayout {
  std::vector<FsdpUnit> units;                 ///< as given: bottom-up, the root last
  std::map<std::string, UnitId> module_units;  ///< unit of each module named in a group
  /// By path; names that share a storage share a place, unless the profile unties them.
  std::unordered_map<std::string, ParameterPlace> parameters;
};

/// Applies `groups`, then the root's, as fully_shard calls: a call owns the parameters below its
/// modules that no earlier call owns, children before parents. Units without parameters are left
/// out. Throws UsageError for a module that two groups name and for a tied weight whose users fall
/// into two units.
UnitLayout layout_units(const ModelSpec& model, const ModuleGroups& groups,
                        const FsdpPolicy& policy, const DeviceMesh& mesh);

}  // namespace fsdp
