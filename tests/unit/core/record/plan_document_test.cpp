#include "core/record/plan_document.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

// The documents of whole models are compared with PyTorch's traces in tests/golden; here only what
// those cannot see.

TEST(PlanJson, SaysWhatTheMemoryFiguresLeaveOut) {
  const auto document =
      nlohmann::json::parse(plan_json(schedule_of(small_llama(1), mixed_precision(), 2)));
  EXPECT_EQ(document["memory_per_rank"]["without"], "activations and logits");
  EXPECT_EQ(document["memory_per_rank"]["total_bytes"].get<std::int64_t>(),
            document["memory_per_rank"]["arenas_bytes"].get<std::int64_t>() +
                document["memory_per_rank"]["optimizer_bytes"].get<std::int64_t>());
}

TEST(PlanJson, ListsNoCollectivesForOneRank) {
  const auto document =
      nlohmann::json::parse(plan_json(schedule_of(small_llama(1), mixed_precision(), 1)));
  EXPECT_TRUE(document["collectives"].empty());
  EXPECT_EQ(document["units"].size(), 2U);
}

TEST(PlanText, FoldsUnitsThatAreAlike) {
  const ModelSpec model = small_llama(40);
  const std::string text = plan_text(schedule_of(model, mixed_precision(), 8), model);
  EXPECT_NE(text.find("model.layers.0 (and 39 alike)"), std::string::npos) << text;
  EXPECT_NE(text.find("41 units"), std::string::npos) << text;
  EXPECT_NE(text.find("41 x"), std::string::npos) << text;  // gathers in forward
  EXPECT_NE(text.find("without activations and logits"), std::string::npos) << text;
}

TEST(PlanText, SaysHowAModelIsScaled) {
  ModelSpec model = small_llama(1);
  model.scaling = "layers 12 -> 1";
  EXPECT_NE(
      plan_text(schedule_of(model, mixed_precision(), 2), model).find("scaled: layers 12 -> 1"),
      std::string::npos);
}

}  // namespace
}  // namespace fsdp
