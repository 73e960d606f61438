// Random module trees, wrap rules, policies and meshes. Everything here draws from RapidCheck, so
// it is called inside a property only; what is drawn shrinks to plain trees and default policies.
#pragma once

#include <ostream>
#include <string>

#include "core/schedule/schedule.hpp"

namespace fsdp::test {

/// What plan_units is given.
struct RandomPlan {
  ModelSpec model;
  FsdpPolicy policy;
  DeviceMesh mesh;
  Batch batch;
};

/// Trees of up to some thirty modules: lists of blocks, modules without parameters, parameters of
/// modules with children, frozen ones, tied ones, modules that run twice or not at all. Sizes are
/// small and odd, so that most shards are padded and some are empty.
ModelSpec any_model();
/// A plan of `profile` for any model, with any knob that the profile has.
RandomPlan any_plan(Profile profile);
/// Of either profile.
RandomPlan any_plan();

/// A run file, its module tree and its mesh: enough to repeat a case by hand.
std::string to_text(const RandomPlan& plan);
/// What RapidCheck prints of a case that fails.
void showValue(const RandomPlan& plan, std::ostream& out);

/// Discards the case where the plan is refused (FSDP1 and mixed dtypes, ties over two units, ...).
WrapPlan planned(const RandomPlan& plan);
Schedule scheduled(const RandomPlan& plan);

/// `low` to `high`, both included, whatever RapidCheck's current size.
int any_of(int low, int high);
bool chance(int percent);

}  // namespace fsdp::test
