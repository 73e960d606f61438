#include <gtest/gtest.h>

#include <string>

#include "core/schedule/schedule.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

/// How a step divides: "avg", "premul_sum / sum" with replicas, and the kernels that divide.
std::string division(const FsdpPolicy& policy, const DeviceMesh& mesh) {
  const Schedule schedule = build_schedule(plan_units(test::small_llama(1), policy, mesh, {}));
  std::string out;
  bool told = false;
  for (const Op& op : schedule.ops) {
    if (const auto* scatter = std::get_if<ReduceScatter>(&op.work); scatter != nullptr && !told) {
      out += to_text(scatter->op);
      told = mesh.replicate == 1;
    } else if (const auto* reduce = std::get_if<AllReduce>(&op.work); reduce != nullptr && !told) {
      out += " / " + std::string(to_text(reduce->op));
      told = true;
    }
  }
  return out;
}

int kernels(const FsdpPolicy& policy, const DeviceMesh& mesh) {
  int out = 0;
  for (const Op& op : build_schedule(plan_units(test::small_llama(1), policy, mesh, {})).ops) {
    out += std::holds_alternative<Divide>(op.work) && op.unit == UnitId{1} ? 1 : 0;
  }
  return out;
}

FsdpPolicy with(DType reduce, std::optional<double> factor = {}, Version version = {2, 14}) {
  FsdpPolicy policy = test::mixed_precision();
  policy.reduce_dtype = reduce;
  policy.gradient_divide_factor = factor;
  policy.version = version;
  return policy;
}

TEST(Fsdp2Reduce, OperationsByTypeFactorAndRelease) {
  const DeviceMesh flat{.replicate = 1, .shard = 8};
  const DeviceMesh hybrid{.replicate = 2, .shard = 4};
  EXPECT_EQ(division(with(DType::f32), flat), "avg");
  EXPECT_EQ(division(with(DType::bf16), hybrid), "avg / avg");
  EXPECT_EQ(division(with(DType::f32, 3.0), flat), "premul_sum");
  EXPECT_EQ(division(with(DType::f32, 8.0), flat), "avg");
  // From 2.10 on the shard group decides, before it all ranks did.
  EXPECT_EQ(division(with(DType::f32, 4.0), hybrid), "avg / sum");
  EXPECT_EQ(division(with(DType::f32, 8.0), hybrid), "premul_sum / sum");
  EXPECT_EQ(division(with(DType::f32, 8.0, {2, 9}), hybrid), "avg / avg");
  EXPECT_EQ(division(with(DType::f32, 4.0, {2, 9}), hybrid), "premul_sum / sum");
}

TEST(Fsdp2Reduce, HalfPrecisionDividesAroundPlainSums) {
  const DeviceMesh flat{.replicate = 1, .shard = 8};
  EXPECT_EQ(division(with(DType::f16), flat), "sum");
  EXPECT_EQ(kernels(with(DType::f16), flat), 2);
  EXPECT_EQ(kernels(with(DType::f32), flat), 0);
  EXPECT_EQ(kernels(with(DType::f16, 2.0), flat), 1) << "2 before, nothing after";
}

TEST(Fsdp2Reduce, ForcedSumsDivideBehind) {
  FsdpPolicy policy = with(DType::f32);
  policy.force_sum_reduction = true;
  const DeviceMesh flat{.replicate = 1, .shard = 8};
  EXPECT_EQ(division(policy, flat), "sum");
  EXPECT_EQ(kernels(policy, flat), 1);
}

TEST(Fsdp2Reduce, AGroupOfItsOwnTakesTheReductionsAlone) {
  FsdpPolicy policy = test::mixed_precision();
  policy.separate_reduce_scatter_group = true;
  for (const Op& op : test::schedule_of(test::small_llama(2), policy, 4).ops) {
    if (is_collective(op)) {
      const bool gathers = std::holds_alternative<AllGather>(op.work);
      EXPECT_EQ(group_of(op)->kind, gathers ? GroupKind::shard : GroupKind::reduce_scatter);
    }
  }
}

}  // namespace
}  // namespace fsdp
