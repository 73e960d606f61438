#include "core/plan/parameter_layout.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/units/error.hpp"
#include "tests/support/plans.hpp"

namespace fsdp {
namespace {

using test::inner;
using test::leaf;
using test::model_of;

Parameter weight(std::vector<std::int64_t> shape, DType dtype = DType::f32) {
  return {.name = "weight", .shape = std::move(shape), .dtype = dtype, .tied_to = {}};
}

UnitParameter sharded(const FsdpPolicy& policy, int ranks, const Parameter& parameter,
                      const std::string& class_name = "Linear") {
  return ParameterLayout(policy, ranks)
      .sharded("m.weight", parameter, leaf("m", class_name, parameter.shape));
}

TEST(ParameterLayout, PadsTheFirstDimensionUpToAMultipleOfTheRanks) {
  // 64 rows of 3 over 7 ranks: 10 rows each.
  const UnitParameter out = sharded({}, 7, weight({64, 3}));
  EXPECT_EQ(out.shard_numel, 30);
  EXPECT_EQ(out.padded_numel, 210);
}

TEST(ParameterLayout, FewerRowsThanRanksLeavesEmptyShardsThatAreMovedAllTheSame) {
  const UnitParameter out = sharded({}, 8, weight({3, 5}));
  EXPECT_EQ(out.shard_numel, 5);
  EXPECT_EQ(out.padded_numel, 40);
}

TEST(ParameterLayout, AnotherDimensionMustDivideEvenly) {
  FsdpPolicy policy;
  policy.shard_dims = {{"m\\.weight", 1}};
  const UnitParameter out = sharded(policy, 4, weight({3, 8}));
  EXPECT_EQ(out.shard_dim, 1);
  EXPECT_EQ(out.shard_numel, 3 * 2);
  EXPECT_EQ(out.padded_numel, 24);
  EXPECT_THROW(sharded(policy, 3, weight({3, 8})), UsageError);
  EXPECT_THROW(sharded(policy, 4, weight({8})), UsageError);
  policy.shard_dims = {{"(", 1}};
  EXPECT_THROW(ParameterLayout(policy, 4), UsageError);
}

TEST(ParameterLayout, TheFirstMatchingExpressionDecides) {
  FsdpPolicy policy;
  policy.shard_dims = {{"m\\..*", 0}, {"m\\.weight", 1}};
  EXPECT_EQ(sharded(policy, 4, weight({4, 8})).shard_dim, 0);
}

TEST(ParameterLayout, GathersInTheComputedTypeOrItsOwn) {
  FsdpPolicy policy;
  EXPECT_EQ(sharded(policy, 2, weight({2}, DType::f16)).gather_dtype, DType::f16);
  policy.param_dtype = DType::bf16;
  EXPECT_EQ(sharded(policy, 2, weight({2}, DType::f16)).gather_dtype, DType::bf16);
  policy.fp8_gather_classes = {"Linear"};
  EXPECT_EQ(sharded(policy, 2, weight({2, 2})).gather_dtype, DType::u8);
  EXPECT_EQ(sharded(policy, 2, weight({2})).gather_dtype, DType::bf16) << "matrices only";
  EXPECT_EQ(sharded(policy, 2, weight({2, 2}), "Norm").gather_dtype, DType::bf16);
}

TEST(ParameterLayout, IgnoresWholePathsThatMatch) {
  FsdpPolicy policy;
  policy.ignored_params = {".*lora.*"};
  const ParameterLayout layout(policy, 2);
  EXPECT_TRUE(layout.ignores("a.lora_A.weight"));
  EXPECT_FALSE(layout.ignores("a.weight"));
}

/// One unit of a 3 x 2 matrix and a vector of 2.
FsdpUnit unit(const FsdpPolicy& policy, int ranks) {
  const ModelSpec model =
      model_of(inner("", "Top", {leaf("m", "Linear", {3, 2}), leaf("n", "Norm", {2})}));
  return test::plan_of(model, policy, ranks).units.front();
}

TEST(ParameterLayout, MixedGatherTypesMoveBytes) {
  FsdpPolicy policy = test::policy_with(WrapNone{});
  policy.param_dtype = DType::bf16;
  policy.fp8_gather_classes = {"Linear"};
  const FsdpUnit mixed = unit(policy, 2);
  EXPECT_EQ(mixed.gather_dtype, DType::u8);
  EXPECT_EQ(mixed.gather_shard_numel, 4 * 1 + 1 * 2);  // 2 x 2 of one byte, 1 of two
  EXPECT_EQ(mixed.shard_numel, 5);
}

TEST(ParameterLayout, AnUnsetReduceTypeIsTheComputedOneAndSince215TheMastersOwn) {
  FsdpPolicy policy = test::policy_with(WrapNone{});
  policy.param_dtype = DType::bf16;
  EXPECT_EQ(unit(policy, 2).reduce_dtype, DType::bf16);
  policy.version = {2, 15};
  EXPECT_EQ(unit(policy, 2).reduce_dtype, DType::f32);
  policy.profile = Profile::fsdp1;
  EXPECT_EQ(unit(policy, 2).reduce_dtype, DType::bf16);
}

TEST(ParameterLayout, AFlatParameterPadsItsEndAndWithOrigParamsEachParameter) {
  FsdpPolicy policy = test::policy_with(WrapNone{}, Profile::fsdp1);
  policy.param_dtype = DType::bf16;
  const FsdpUnit flat = unit(policy, 3);
  EXPECT_EQ(flat.parameters[1].flat_offset, 6);
  EXPECT_EQ(flat.padded_numel, 9);
  EXPECT_EQ(flat.shard_numel, 3);
  policy.fsdp1.use_orig_params = true;
  const FsdpUnit orig = unit(policy, 3);
  EXPECT_EQ(orig.parameters[1].flat_offset, 8) << "16 bytes are 8 elements of bf16";
  EXPECT_EQ(orig.padded_numel, 12);
}

TEST(ParameterLayout, Fsdp1RefusesMixedFlagsWithoutOrigParams) {
  Module top = inner("", "Top", {leaf("m", "Linear", {3, 2}), leaf("n", "Norm", {2})});
  top.children[1].parameters[0].trainable = false;
  const ModelSpec model = model_of(std::move(top));
  FsdpPolicy policy = test::policy_with(WrapNone{}, Profile::fsdp1);
  EXPECT_THROW(test::plan_of(model, policy, 2), UsageError);
  policy.fsdp1.use_orig_params = true;
  const FsdpUnit mixed = test::plan_of(model, policy, 2).units.front();
  EXPECT_TRUE(mixed.parameters[1].trainable) << "a view of a flat parameter gets a gradient";
  EXPECT_NO_THROW(test::plan_of(model, test::policy_with(WrapNone{}), 2));
}

TEST(ParameterLayout, RefusesMixedMasterTypesAmongTrainableParameters) {
  Module top = inner("", "Top", {leaf("m", "Linear", {3, 2}), leaf("n", "Norm", {2})});
  top.children[1].parameters[0].dtype = DType::bf16;
  EXPECT_THROW(test::plan_of(model_of(std::move(top)), test::policy_with(WrapNone{}), 2),
               UsageError);
}

}  // namespace
}  // namespace fsdp
