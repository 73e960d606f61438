// How one parameter is cut over the shard group, and what a unit's parameters make of the unit.
#pragma once

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/wrap_plan.hpp"

namespace fsdp {

class ParameterLayout {
 public:
  /// Throws UsageError for an expression of the policy that does not compile.
  ParameterLayout(const FsdpPolicy& policy, int ranks);

  /// True for a parameter that the policy leaves out.
  bool ignores(const std::string& path) const;
  /// `module` holds the parameter. Throws UsageError where a dimension other than the first does
  /// not divide evenly, as PyTorch does.
  UnitParameter sharded(const std::string& path, const Parameter& parameter,
                        const Module& module) const;
  /// Sizes and dtypes of the unit from its parameters. Throws UsageError for parameters PyTorch
  /// does not put into one unit.
  void finish(FsdpUnit& unit) const;

 private:
  void finish_dtypes(FsdpUnit& unit) const;
  void finish_flat(FsdpUnit& unit) const;

  const FsdpPolicy& policy_;
  std::int64_t ranks_;
  std::vector<std::regex> ignored_;
  std::vector<std::pair<std::regex, int>> shard_dims_;
};

}  // namespace fsdp
