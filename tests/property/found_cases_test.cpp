// Plans that the properties of this folder have found a wrong schedule for, kept small and for
// ever.
#include <gtest/gtest.h>

#include "core/schedule/schedule.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/verify.hpp"
#include "tests/property/ordering.hpp"
#include "tests/support/plans.hpp"

namespace fsdp {
namespace {

using test::inner;
using test::leaf;
using test::model_of;

Module frozen(Module module) {
  for (Parameter& parameter : module.parameters) {
    parameter.trainable = false;
  }
  return module;
}

void expect_sound(const ModelSpec& model, const FsdpPolicy& policy, int ranks) {
  const Schedule schedule = build_schedule(test::plan_of(model, policy, ranks));
  for (const Violation& violation : verify(schedule)) {
    ADD_FAILURE() << "#" << violation.op.value << " " << violation.what << "\n"
                  << to_text(schedule);
  }
  const test::Closure before(schedule);
  for (const test::Needed& needed : test::needed_orders(schedule)) {
    EXPECT_TRUE(before(needed.first, needed.second)) << op_text(schedule, needed.first) << "\n"
                                                     << op_text(schedule, needed.second);
  }
}

TEST(FoundCases, ASliceIsNotFreedUnderTheGatherOfAUnitThatBackwardNeverReaches) {
  ModelSpec model = model_of(
      inner("", "Top", {frozen(leaf("a", "Linear", {4, 4})), leaf("b", "Linear", {4, 4})}));
  for (ModuleCall& call : model.calls) {
    call.input_requires_grad = false;
  }
  FsdpPolicy policy = test::policy_with(WrapClass{{"Linear"}});
  policy.reshard_after_forward = {2};
  expect_sound(model, policy, 4);
}

TEST(FoundCases, AUnitOverPartsOfTwoCheckpointedBlocksLeavesNoGatherBehind) {
  const ModelSpec model = model_of(inner(
      "", "Top",
      {leaf("first", "Linear", {4, 4}),
       inner("x", "XBlock", {leaf("x.a", "Linear", {4, 4}), frozen(leaf("x.b", "Norm", {4}))}),
       inner("y", "YBlock", {leaf("y.a", "Linear", {4, 4}), leaf("y.b", "Linear", {4, 4})})}));
  FsdpPolicy policy = test::policy_with(WrapGroups{{{"first"}, {"x.b", "y.a"}, {"x"}, {"y"}}});
  policy.activation_checkpointing = Checkpointing::full;
  expect_sound(model, policy, 2);
}

TEST(FoundCases, AFrozenUnitThatStaysUnshardedIsNotFreedBeforeItIsRepeated) {
  const ModelSpec model = model_of(inner(
      "", "Top",
      {leaf("first", "Linear", {4, 4}),
       inner("x", "XBlock", {leaf("x.a", "Linear", {4, 4}), frozen(leaf("x.b", "Norm", {4}))})}));
  FsdpPolicy policy = test::policy_with(WrapClass{{"Norm"}}, Profile::fsdp1);
  policy.activation_checkpointing = Checkpointing::full;
  policy.fsdp1.sharding = ShardingStrategy::shard_grad_op;
  policy.fsdp1.use_orig_params = true;
  expect_sound(model, policy, 2);
}

TEST(FoundCases, AGatherThatNobodyWaitedForMayBeFreed) {
  // Its block of memory belongs to the stream of the gather, where the next owner stands behind it.
  ModelSpec model = model_of(inner(
      "", "Top",
      {inner("x", "XBlock", {leaf("x.a", "Linear", {4, 4}), frozen(leaf("x.b", "Linear", {4, 4}))}),
       leaf("last", "Linear", {4, 4})}));
  model.calls.insert(model.calls.begin() + 4, model.calls.begin() + 1, model.calls.begin() + 4);
  FsdpPolicy policy = test::policy_with(WrapSubBlock{}, Profile::fsdp1);
  policy.activation_checkpointing = Checkpointing::selective;
  policy.fsdp1.backward_prefetch = BackwardPrefetch::post;
  policy.fsdp1.use_orig_params = true;
  expect_sound(model, policy, 2);
}

}  // namespace
}  // namespace fsdp
