#include "core/advice/memory_budget.hpp"

#include <gtest/gtest.h>

#include "core/model/activations.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

MemoryBudget budget(const FsdpPolicy& policy, std::optional<Bytes> limit = std::nullopt) {
  const ModelSpec model = test::small_llama(3);
  return memory_budget(model, test::schedule_of(model, policy, 4), limit);
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(MemoryBudget, AddsWhatFsdpHoldsActivationsAndLogits) {
  const MemoryBudget out = budget(test::mixed_precision());
  const Activations kept = activations(test::small_llama(3), {.sequence = 16, .micro_batch = 2},
                                       DType::bf16, Checkpointing::none);
  EXPECT_EQ(out.chosen().activations, kept.blocks + kept.outside);
  EXPECT_EQ(out.chosen().total, out.fsdp.resident + out.reserved_transient() + out.fsdp.optimizer +
                                    kept.blocks + kept.outside + kept.logits);
  EXPECT_EQ(out.host.value, 0);
}

TEST(MemoryBudget, CheckpointingKeepsLessAndThePolicysIsChosen) {
  FsdpPolicy policy = test::mixed_precision();
  policy.activation_checkpointing = Checkpointing::full;
  const MemoryBudget out = budget(policy);
  EXPECT_EQ(out.chosen().checkpointing, Checkpointing::full);
  EXPECT_LT(out.needs[2].activations, out.needs[1].activations);
  EXPECT_LT(out.needs[1].activations, out.needs[0].activations);
}

TEST(MemoryBudget, OffloadMovesShardsGradientsAndMomentsToTheHost) {
  FsdpPolicy policy = test::mixed_precision();
  policy.cpu_offload = true;
  const MemoryBudget out = budget(policy);
  // 141,760 elements over 4 ranks, four times in f32; pools are laid out in blocks of 64 bytes.
  EXPECT_NEAR(static_cast<double>(out.host.value), 141760.0 / 4 * 4 * 4, 8 * 64);
  EXPECT_EQ(out.fsdp.pools[static_cast<std::size_t>(Pool::resident)].reserved.value, 0);
}

TEST(Verdict, SaysWhatFitsAndWhatWould) {
  const FsdpPolicy policy = test::mixed_precision();
  expect_in("memory.limit says what fits", verdict(budget(policy)));
  expect_in("fits 1 GiB with", verdict(budget(policy, Bytes{1 << 30})));
  const MemoryBudget all = budget(policy);
  const Bytes between = {(all.needs[0].total.value + all.needs[2].total.value) / 2};
  expect_in("with activation_checkpointing: full it is", verdict(budget(policy, between)));
  const Bytes tight = {all.needs[2].total.value - 1};
  expect_in("no checkpointing makes it fit", verdict(budget(policy, tight)));
  expect_in("the sharded state alone is larger", verdict(budget(policy, Bytes{1 << 10})));
}

TEST(Verdict, NamesThePartThatWeighsMost) {
  // Few tokens: what one rank holds of four shards, and of activations, is less than whole units.
  expect_in("of it FSDP's buffers", verdict(budget(test::mixed_precision(), Bytes{1 << 10})));
}

}  // namespace
}  // namespace fsdp
