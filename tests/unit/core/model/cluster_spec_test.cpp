#include "core/model/cluster_spec.hpp"

#include <gtest/gtest.h>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

TEST(CostCurve, InterpolatesBetweenPoints) {
  const CostCurve curve{{{{100}, {1000}}, {{200}, {3000}}, {{400}, {4000}}}};
  EXPECT_EQ(curve.at({150}).value, 2000);
  EXPECT_EQ(curve.at({200}).value, 3000);
  EXPECT_EQ(curve.at({300}).value, 3500);
}

TEST(CostCurve, HoldsTheFirstTimeBelowAndTheLastSlopeBeyond) {
  const CostCurve curve{{{{100}, {1000}}, {{200}, {3000}}}};
  EXPECT_EQ(curve.at({1}).value, 1000);
  EXPECT_EQ(curve.at({300}).value, 5000);
}

TEST(CostCurve, NeverFallsBeyondTheLastPoint) {
  const CostCurve curve{{{{100}, {3000}}, {{200}, {1000}}}};
  EXPECT_EQ(curve.at({10'000}).value, 1000);
}

TEST(CostCurve, OnePointIsAConstantAndNoneIsABug) {
  EXPECT_EQ((CostCurve{{{{100}, {7}}}}.at({1'000'000}).value), 7);
  EXPECT_THROW(CostCurve{}.at({1}), ContractViolation);
}

}  // namespace
}  // namespace fsdp
