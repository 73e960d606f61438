#include "core/schedule/schedule.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/schedule/text.hpp"
#include "core/schedule/verify.hpp"
#include "core/units/error.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

/// "AG root, RS root" with unit names cut to their last component.
std::string collectives(const Schedule& schedule) {
  std::string out;
  for (const Op& op : schedule.ops) {
    if (is_collective(op)) {
      const std::string& name = schedule.plan[op.unit].name;
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                         std::holds_alternative<AllGather>(op.work) ? "AG" : "RS",
                         name.substr(name.rfind('.') + 1));
    }
  }
  return out;
}

TEST(BuildSchedule, BlockOrderIsPyTorchs) {
  EXPECT_EQ(collectives(schedule_of(small_llama(3), mixed_precision(), 8)),
            "AG root, AG 0, AG 1, AG 2, AG 2, AG 1, RS 2, AG 0, RS 1, RS 0, RS root");
}

TEST(BuildSchedule, TitanOrderIsPyTorchs) {
  FsdpPolicy policy = mixed_precision();
  policy.wrap = WrapTitan{};
  EXPECT_EQ(
      collectives(schedule_of(small_llama(3), policy, 8)),
      "AG embed_tokens, AG 0, AG 1, AG 2, AG norm+lm_head, AG norm+lm_head, AG 2, RS norm+lm_head, "
      "AG 1, RS 2, AG 0, RS 1, AG embed_tokens, RS 0, RS embed_tokens");
}

TEST(BuildSchedule, CountsOfBlocksAndTitan) {
  const auto counts = [](const WrapRule& rule, int blocks) {
    FsdpPolicy policy = mixed_precision();
    policy.wrap = rule;
    std::pair<int, int> out;
    for (const Op& op : schedule_of(small_llama(blocks), policy, 8).ops) {
      out.first += std::holds_alternative<AllGather>(op.work) ? 1 : 0;
      out.second += std::holds_alternative<ReduceScatter>(op.work) ? 1 : 0;
    }
    return out;
  };
  for (const int blocks : {1, 4, 9}) {
    EXPECT_EQ(counts(WrapBlock{}, blocks), (std::pair{2 * blocks + 1, blocks + 1}));
    // The embedding is gathered in backward for nothing. The head is kept by torchtitan alone.
    EXPECT_EQ(counts(WrapTitan{}, blocks), (std::pair{2 * blocks + 4, blocks + 2}));
  }
}

TEST(BuildSchedule, KeptParametersAreGatheredOnce) {
  FsdpPolicy policy = mixed_precision();
  policy.reshard_after_forward = Reshard::keep();
  EXPECT_EQ(collectives(schedule_of(small_llama(2), policy, 8)),
            "AG root, AG 0, AG 1, RS 1, RS 0, RS root");
}

TEST(BuildSchedule, DeeperPrefetchMovesGathersAhead) {
  FsdpPolicy policy = mixed_precision();
  policy.forward_prefetch = 2;
  policy.backward_prefetch = 2;
  EXPECT_EQ(collectives(schedule_of(small_llama(3), policy, 8)),
            "AG root, AG 0, AG 1, AG 2, AG 2, AG 1, AG 0, RS 2, RS 1, RS 0, RS root");
}

TEST(BuildSchedule, OneRankCopiesLocallySincePyTorch29) {
  FsdpPolicy policy = mixed_precision();
  EXPECT_EQ(collectives(schedule_of(small_llama(2), policy, 1)), "");
  policy.version = {2, 8};
  EXPECT_EQ(collectives(schedule_of(small_llama(1), policy, 1)),
            "AG root, AG 0, AG 0, RS 0, RS root");
}

TEST(BuildSchedule, ComputeWaitsForTheReduceScatterBeforeItPacksTheNext) {
  const Schedule schedule = schedule_of(small_llama(3), mixed_precision(), 8);
  OpId reduced;
  int checked = 0;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (std::holds_alternative<ReduceScatter>(op.work)) {
      reduced = {static_cast<std::int32_t>(i)};
    } else if (const auto* release = std::get_if<Free>(&op.work);
               release != nullptr &&
               schedule[release->buffer].kind == BufferKind::reduce_scatter_input && checked < 3) {
      EXPECT_EQ(op.after, std::vector<OpId>{reduced});
      ++checked;
    }
  }
  EXPECT_EQ(checked, 3);
}

TEST(BuildSchedule, AUnitThatRunsTwiceIsGatheredTwiceEachWayAndReducedOnce) {
  ModelSpec model = small_llama(2);
  std::vector<ModuleCall> calls;
  for (const ModuleCall& call : model.calls) {
    calls.push_back(call);
    if (call.module == "model.layers.1.mlp.down_proj") {  // the second block runs again
      for (const ModuleCall& again : model.calls) {
        if (is_within(again.module, "model.layers.1")) {
          calls.push_back(again);
        }
      }
    }
  }
  model.calls = calls;
  EXPECT_EQ(collectives(schedule_of(model, mixed_precision(), 8)),
            "AG root, AG 0, AG 1, AG 1, AG 1, AG 1, AG 0, RS 1, RS 0, RS root");
}

TEST(BuildSchedule, RefusesWhatTheProfileDoesNotKnow) {
  const ModelSpec model = small_llama(1);
  FsdpPolicy policy = mixed_precision();
  policy.version = {2, 7};
  EXPECT_THROW(schedule_of(model, policy, 2), UsageError);
  policy.version = {2, 12};
  policy.reduce_scatter_buffers = 2;
  EXPECT_THROW(schedule_of(model, policy, 2), UsageError);
  policy.version = {2, 13};
  EXPECT_NO_THROW(schedule_of(model, policy, 2));
  policy.reshard_after_forward = {3};  // 4 ranks are not divided by 3
  EXPECT_THROW(schedule_of(model, policy, 4), UsageError);
  policy = mixed_precision();
  policy.forward_prefetch = -1;
  EXPECT_THROW(schedule_of(model, policy, 2), UsageError);
  policy.forward_prefetch = PrefetchLists{{"root", {"model.layers.9"}}};
  EXPECT_THROW(schedule_of(model, policy, 2), UsageError);
}

TEST(ScheduleHash, NamesTheEffectNotThePolicysWords) {
  FsdpPolicy block = mixed_precision();
  FsdpPolicy every = block;
  every.wrap = WrapEvery{1};
  FsdpPolicy two = block;
  two.wrap = WrapEvery{2};
  const ModelSpec model = small_llama(3);
  EXPECT_EQ(schedule_hash(schedule_of(model, block, 4)),
            schedule_hash(schedule_of(model, every, 4)));
  EXPECT_NE(schedule_hash(schedule_of(model, block, 4)), schedule_hash(schedule_of(model, two, 4)));
  EXPECT_NE(schedule_hash(schedule_of(model, block, 4)),
            schedule_hash(schedule_of(model, block, 2)));
}

}  // namespace
}  // namespace fsdp
