// Units that differ in index only, told once: what 126 equal blocks have in common is one line.
#pragma once

#include <string>
#include <vector>

#include "core/plan/wrap_plan.hpp"

namespace fsdp {

/// Units of the same sizes, dtypes and fate whose names differ in their numbers only.
struct UnitRun {
  std::vector<UnitId> units;  ///< in plan order; at least one
  std::string name;           ///< "model.layers.0 .. 125", or the one unit's own name

  UnitId first() const { return units.front(); }
  int count() const { return static_cast<int>(units.size()); }
};

/// Those of `units` as one run. They must be alike.
UnitRun run_of(const WrapPlan& plan, std::vector<UnitId> units);

/// All units, in order of the first of each run.
std::vector<UnitRun> unit_runs(const WrapPlan& plan);

/// "model.layers.0 .. 125 (126 alike)", or the name alone.
std::string to_text(const UnitRun& run);

}  // namespace fsdp
