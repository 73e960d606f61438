#include "core/advice/unit_runs.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

std::vector<std::string> names(const WrapPlan& plan) {
  std::vector<std::string> out;
  for (const UnitRun& run : unit_runs(plan)) {
    out.push_back(to_text(run));
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(UnitRuns, BlocksThatAreAlikeAreOne) {
  EXPECT_EQ(names(test::plan_of(test::small_llama(4), test::policy_with(WrapBlock{}), 2)),
            (Names{"root", "model.layers.0 .. 3 (4 alike)"}));
}

TEST(UnitRuns, ANumberInsideAPathIsARangeInItsPlace) {
  EXPECT_EQ(
      names(test::plan_of(test::small_llama(2), test::policy_with(WrapClass{{"LlamaMLP"}}), 2)),
      (Names{"root", "model.layers.[0 .. 1].mlp (2 alike)"}));
}

TEST(UnitRuns, WhereSeveralNumbersVaryTheEndsAreNamed) {
  EXPECT_EQ(names(test::plan_of(test::small_llama(4), test::policy_with(WrapEvery{2}), 2))[1],
            "model.layers.0+model.layers.1 .. model.layers.2+model.layers.3 (2 alike)");
}

TEST(UnitRuns, OtherSizesOrFatesAreOtherRuns) {
  FsdpPolicy policy = test::policy_with(WrapBlock{});
  policy.reshard_units["model.layers.3"] = Reshard::keep();
  EXPECT_EQ(names(test::plan_of(test::small_llama(4), policy, 2)),
            (Names{"root", "model.layers.0 .. 2 (3 alike)", "model.layers.3"}));
}

}  // namespace
}  // namespace fsdp
