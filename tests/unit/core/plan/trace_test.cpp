#include "core/plan/trace.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/units/error.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

/// "enter root, compute root, exit root". What one unit computes in several steps is told once.
std::string steps(const WrapPlan& plan) {
  static constexpr const char* names[] = {"enter", "compute", "exit", "begin", "end"};
  std::string out;
  const TraceStep* before = nullptr;
  for (const TraceStep& step : plan.trace) {
    const bool goes_on = before != nullptr && step.kind == TraceStep::Kind::compute &&
                         before->kind == step.kind && before->unit == step.unit;
    before = &step;
    if (goes_on) {
      continue;
    }
    out += out.empty() ? "" : ", ";
    out += names[static_cast<int>(step.kind)];
    out += step.unit.valid() ? " " + plan[step.unit].name : "";
  }
  return out;
}

/// Two leaves that multiply and one block of one.
ModelSpec small() {
  return test::model_of(
      test::inner("", "Top",
                  {test::leaf("a", "Linear", {4, 4}),
                   test::inner("b", "MyBlock", {test::leaf("b.c", "Linear", {4, 4})}),
                   test::leaf("d", "Linear", {4, 4})}));
}

TEST(Trace, AUnitIsEnteredAroundWhatItComputes) {
  EXPECT_EQ(steps(test::plan_of(small(), test::policy_with(WrapBlock{}), 2)),
            "enter root, compute root, enter b, compute b, exit b, compute root, exit root");
}

TEST(Trace, AGroupSpansFromItsFirstModuleToItsLast) {
  EXPECT_EQ(steps(test::plan_of(small(), test::policy_with(WrapGroups{{{"b"}, {"a", "d"}}}), 2)),
            "enter a+d, compute a+d, enter b, compute b, exit b, compute a+d, exit a+d");
}

TEST(Trace, CheckpointsSurroundBlocks) {
  FsdpPolicy policy = test::policy_with(WrapBlock{});
  policy.activation_checkpointing = Checkpointing::full;
  EXPECT_EQ(steps(test::plan_of(small(), policy, 2)),
            "enter root, compute root, enter b, begin, compute b, end, exit b, compute root, exit "
            "root");
}

TEST(Trace, AModuleThatRunsTwiceEntersItsUnitTwice) {
  ModelSpec model = small();
  model.calls.insert(model.calls.begin() + 4, {{.module = "b"}, {.module = "b.c"}});
  EXPECT_EQ(steps(test::plan_of(model, test::policy_with(WrapBlock{}), 2)),
            "enter root, compute root, enter b, compute b, exit b, enter b, compute b, exit b, "
            "compute root, exit root");
}

TEST(Trace, FullCheckpointingRepeatsTheProductsAndSelectiveTheScoresAlone) {
  FsdpPolicy policy = test::policy_with(WrapBlock{});
  const auto repeated = [&](Checkpointing kind) {
    policy.activation_checkpointing = kind;
    std::size_t count = 0;
    for (const TraceStep& step : test::plan_of(test::small_llama(1), policy, 2).trace) {
      count += step.recompute.size();
    }
    return count;
  };
  EXPECT_EQ(repeated(Checkpointing::none), 0U);
  EXPECT_EQ(repeated(Checkpointing::full), 9U) << "q k v, scores, values, o, gate up down";
  EXPECT_EQ(repeated(Checkpointing::selective), 2U);
}

TEST(Trace, FrozenParametersGetNoGradient) {
  ModelSpec model = small();
  model.root.children[0].parameters[0].trainable = false;
  for (const TraceStep& step : test::plan_of(model, test::policy_with(WrapBlock{}), 2).trace) {
    for (const int index : step.gradients) {
      EXPECT_NE(index, step.unit.value == 0 ? 0 : -1) << "a.weight is the root's first";
    }
  }
}

TEST(Trace, AnIgnoredParameterIsNotReadFromAUnit) {
  Module top = test::inner("", "Top", {test::leaf("a", "Linear", {4, 4})});
  top.parameters = {{.name = "mix", .shape = {4, 4}, .tied_to = {}}};
  const ModelSpec model = test::model_of(std::move(top));
  FsdpPolicy policy = test::policy_with(WrapAlways{});
  policy.ignored_params = {"mix"};
  std::vector<bool> reads;
  for (const TraceStep& step : test::plan_of(model, policy, 2).trace) {
    if (!step.forward.empty()) {
      reads.push_back(step.reads_parameters);
    }
  }
  EXPECT_EQ(reads, (std::vector<bool>{false, true})) << "the product of mix, then a's";
}

TEST(Trace, RefusesCallsThatDoNotFollowTheTree) {
  ModelSpec model = small();
  model.calls.push_back({.module = "nowhere"});
  EXPECT_THROW(test::plan_of(model, test::policy_with(WrapBlock{}), 2), UsageError);
}

}  // namespace
}  // namespace fsdp
