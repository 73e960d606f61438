#include "core/advice/alignment.hpp"

#include <gtest/gtest.h>

#include "core/schedule/schedule.hpp"
#include "tests/support/plans.hpp"

namespace fsdp {
namespace {

using test::inner;
using test::leaf;

/// 9 x 5 and 6 elements.
std::vector<CollectiveAlignment> report(Profile profile, int ranks) {
  const ModelSpec model =
      test::model_of(inner("", "Top", {leaf("a", "Linear", {9, 5}), leaf("b", "Norm", {6})}));
  FsdpPolicy policy = test::policy_with(WrapNone{}, profile);
  policy.param_dtype = DType::bf16;
  policy.reduce_dtype = DType::f32;
  return alignment_report(build_schedule(test::plan_of(model, policy, ranks)));
}

TEST(Alignment, PartsOfParametersOverThreeRanks) {
  const auto out = report(Profile::fsdp2, 3);
  ASSERT_EQ(out.size(), 2U);
  // The gather, in bf16: 3 rows of 5 are 30 bytes, then 2 elements; 34 in all, 2 beyond 32.
  EXPECT_EQ(out[0].part.value, 34);
  EXPECT_EQ(out[0].beyond.value, 2);
  ASSERT_EQ(out[0].parameters.size(), 1U) << "the first starts at 0";
  EXPECT_EQ(out[0].parameters[0].index, 1);
  EXPECT_EQ(out[0].parameters[0].offset.value, 30);
  EXPECT_EQ(out[0].padding.value, 2 + 12);
  EXPECT_FALSE(out[0].aligned());
  // The reduction, in f32: 60 bytes, then 8.
  EXPECT_EQ(out[1].part.value, 68);
  EXPECT_EQ(out[1].padding.value, 4 + 8);
}

TEST(Alignment, AFlatParameterHasOnePart) {
  const auto out = report(Profile::fsdp1, 3);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].part.value, 51 / 3 * 2);
  EXPECT_TRUE(out[0].parameters.empty());
  EXPECT_EQ(out[0].padding.value, 14);
}

TEST(Alignment, EqualGathersAreCountedAndMultiplesOf16AreAligned) {
  const ModelSpec model = test::model_of(inner(
      "", "Top",
      {inner("x", "MyBlock", {leaf("x.a", "Linear", {16, 8})}), leaf("b", "Linear", {8, 8})}));
  FsdpPolicy policy = test::policy_with(WrapBlock{});
  policy.param_dtype = DType::bf16;
  const auto out = alignment_report(build_schedule(test::plan_of(model, policy, 2)));
  for (const CollectiveAlignment& entry : out) {
    EXPECT_TRUE(entry.aligned());
    EXPECT_EQ(entry.padding.value, 0);
  }
  EXPECT_EQ(out[1].count, 2) << "the block is gathered in forward and in backward";
}

}  // namespace
}  // namespace fsdp
