#include <gtest/gtest.h>

#include "tests/support/reports.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

std::string text_of(const ModelSpec& model, const FsdpPolicy& policy, int ranks,
                    std::optional<Bytes> limit = std::nullopt) {
  const Schedule schedule = schedule_of(model, policy, ranks);
  return plan_text(test::report_of(model, schedule, limit));
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(PlanText, FoldsUnitsThatAreAlike) {
  const std::string text = text_of(small_llama(40), mixed_precision(), 8);
  expect_in("model.layers.0 .. 39 (40 alike)", text);
  expect_in("41 units", text);
  expect_in("41 x", text);  // gathers in forward
  EXPECT_EQ(text.find("model.layers.17"), std::string::npos) << text;
}

TEST(PlanText, SaysHowAModelIsScaled) {
  ModelSpec model = small_llama(1);
  model.scaling = "layers 12 -> 1";
  expect_in("scaled: layers 12 -> 1", text_of(model, mixed_precision(), 2));
}

TEST(PlanText, SaysWhetherItFits) {
  expect_in("fits 1 GiB", text_of(small_llama(1), mixed_precision(), 2, Bytes{1 << 30}));
  expect_in("does not fit 1 KiB", text_of(small_llama(1), mixed_precision(), 2, Bytes{1 << 10}));
  expect_in("memory.limit says what fits", text_of(small_llama(1), mixed_precision(), 2));
}

TEST(PlanText, SaysWhereTimesComeFrom) {
  expect_in("assumed", text_of(small_llama(1), mixed_precision(), 2));
}

TEST(PlanText, AllIsWellIsOneLineEach) {
  FsdpPolicy policy = mixed_precision();
  policy.reduce_dtype = DType::bf16;
  policy.forward_prefetch = 1;
  policy.reshard_after_forward = Reshard::keep();
  const std::string text = text_of(small_llama(2), policy, 4);
  expect_in("Findings: none", text);
  expect_in("Alignment: all parts", text);
}

TEST(PlanText, OneRankMovesNothing) {
  expect_in("Collectives a step: none", text_of(small_llama(1), mixed_precision(), 1));
}

}  // namespace
}  // namespace fsdp
