#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/reports.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using nlohmann::json;
using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

// The keys that recorded traces have are compared with those in tests/golden; here the others.

json document(const ModelSpec& model, const FsdpPolicy& policy, int ranks,
              std::optional<Bytes> limit = std::nullopt) {
  const Schedule schedule = schedule_of(model, policy, ranks);
  return json::parse(plan_json(test::report_of(model, schedule, limit)));
}

TEST(PlanJson, HasTheKeysOfTheTracesAndItsOwn) {
  const json plan = document(small_llama(2), mixed_precision(), 4);
  for (const char* key : {"policy", "units", "collectives", "memory", "order", "memory_per_rank",
                          "flop_a_micro_batch", "findings", "times", "alignment"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
}

TEST(PlanJson, MemoryOfARankAddsUp) {
  const json memory =
      document(small_llama(1), mixed_precision(), 2, Bytes{1 << 20})["memory_per_rank"];
  std::int64_t reserved = 0;
  for (const json& pool : memory["pools"]) {
    EXPECT_LE(pool["allocated_bytes"], pool["reserved_bytes"]);
    reserved += pool["reserved_bytes"].get<std::int64_t>();
  }
  const json& none = memory["with_activations"][0];
  EXPECT_EQ(none["activation_checkpointing"], "none");
  EXPECT_EQ(none["total_bytes"].get<std::int64_t>(),
            reserved + memory["optimizer_bytes"].get<std::int64_t>() +
                none["activations_bytes"].get<std::int64_t>() +
                none["logits_bytes"].get<std::int64_t>());
  EXPECT_EQ(memory["total_bytes"], none["total_bytes"]);
  EXPECT_EQ(none["fits"], none["total_bytes"].get<std::int64_t>() <= 1 << 20);
  EXPECT_EQ(memory["limit_bytes"], 1 << 20);
}

TEST(PlanJson, NamesTheUnitOfTheLargestBuffer) {
  // The root, 2 x 96 x 64 + 64 elements, is reduced in f32; a block has fewer than half of them.
  const json memory = document(small_llama(1), mixed_precision(), 2)["memory_per_rank"];
  FsdpPolicy titan = mixed_precision();
  titan.wrap = WrapTitan{};
  const json split = document(small_llama(1), titan, 2)["memory_per_rank"];
  EXPECT_EQ(memory["largest_buffer"]["unit"], "model.layers.0");
  EXPECT_EQ(memory["largest_buffer"]["kind"], "reduce_scatter_input");
  // q, k, v and o: 64 x (64 + 2 x 32 + 64), three of 64 x 160, two norms; in f32.
  EXPECT_EQ(memory["largest_buffer"]["bytes"], 4 * (64 * 192 + 3 * 64 * 160 + 2 * 64));
  EXPECT_EQ(split["largest_buffer"]["unit"], "model.layers.0");
}

TEST(PlanJson, ListsNoCollectivesForOneRank) {
  const json plan = document(small_llama(1), mixed_precision(), 1);
  EXPECT_TRUE(plan["collectives"].empty());
  EXPECT_EQ(plan["units"].size(), 2U);
}

TEST(PlanJson, AFindingHasItsCostAndItsRemedy) {
  const json plan = document(small_llama(1), mixed_precision(), 4);
  bool seen = false;
  for (const json& finding : plan["findings"]) {
    EXPECT_FALSE(finding["what"].get<std::string>().empty());
    EXPECT_FALSE(finding["why"].get<std::string>().empty());
    EXPECT_FALSE(finding["remedy"].get<std::string>().empty());
    EXPECT_GT(finding["bytes"].get<std::int64_t>(), 0);
    if (finding["id"] == "wide_reduction") {
      seen = true;
      EXPECT_EQ(finding["cost"], "moved");
      EXPECT_GT(finding["time_ns"].get<std::int64_t>(), 0);
    }
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace fsdp
