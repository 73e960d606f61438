#include "bench/calibrate/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/verify.hpp"
#include "core/units/error.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

CalibrationNeeds needs(int shard) {
  CalibrationNeeds result;
  result.mesh = {.replicate = 1, .shard = shard};
  result.gemms = {
      {{1, 8, 8, 8}, DType::bf16}, {{1, 16, 8, 8}, DType::bf16}, {{2, 8, 8, 8}, DType::f32}};
  return result;
}

SizeRange range(std::int64_t smallest, std::int64_t largest) {
  SizeRange result;
  result.smallest = smallest;
  result.largest = largest;
  return result;
}

std::string violations(const Schedule& schedule) {
  std::string text;
  for (const Violation& violation : verify(schedule)) {
    text += "#" + std::to_string(violation.op.value) + " " + violation.what + "\n";
  }
  return text;
}

int count(const Schedule& schedule, std::string_view name) {
  return static_cast<int>(std::count_if(schedule.ops.begin(), schedule.ops.end(),
                                        [&](const Op& op) { return name_of(op) == name; }));
}

/// Every op that takes time depends on the one before it: by their stream, or by an edge.
void expect_serial(const Schedule& schedule) {
  const Op* before = nullptr;
  OpId before_id;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (std::holds_alternative<Allocate>(op.work) || std::holds_alternative<Free>(op.work)) {
      continue;
    }
    if (before != nullptr && before->stream != op.stream) {
      EXPECT_NE(std::find(op.after.begin(), op.after.end(), before_id), op.after.end()) << i;
    }
    before = &op;
    before_id = {static_cast<std::int32_t>(i)};
  }
}

class SizeSchedule : public ::testing::TestWithParam<int> {};

TEST_P(SizeSchedule, IsValidSerialAndHoldsEveryOperationOnce) {
  for (const std::int64_t numel : {1, 7, 1024, 100'003}) {
    const Schedule schedule = size_schedule(needs(GetParam()), range(numel, numel), numel);
    EXPECT_EQ(violations(schedule), "");
    expect_serial(schedule);
    const int collectives = GetParam() > 1 ? 1 : 0;
    EXPECT_EQ(count(schedule, "all_gather"), collectives);
    EXPECT_EQ(count(schedule, "reduce_scatter"), collectives);
    EXPECT_EQ(count(schedule, "chunk_cat"), 1);
    EXPECT_GE(count(schedule, "cast"), 1);
  }
}

TEST_P(SizeSchedule, GemmsStandInOpsOfTheirOwn) {
  const Schedule schedule = gemm_schedule(needs(GetParam()), range(64, 64), DType::bf16);
  EXPECT_EQ(violations(schedule), "");
  expect_serial(schedule);
  std::vector<Gemm> seen;
  for (const Op& op : schedule.ops) {
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      EXPECT_LE(compute->gemms.size(), 1U);
      EXPECT_EQ(compute->dtype, DType::bf16);
      seen.insert(seen.end(), compute->gemms.begin(), compute->gemms.end());
    }
  }
  EXPECT_EQ(seen, (std::vector<Gemm>{{1, 8, 8, 8}, {1, 16, 8, 8}}));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SizeSchedule, ::testing::Values(1, 2, 3, 8));

TEST(SizeSchedule, MovesTheBytesThatWereAskedFor) {
  const Schedule schedule = size_schedule(needs(4), range(4096, 4096), 4096);
  for (const Op& op : schedule.ops) {
    if (name_of(op) == "all_gather") {
      EXPECT_EQ(cost_bytes(schedule, op), bytes_of(4096, DType::bf16));
    } else if (name_of(op) == "reduce_scatter") {
      EXPECT_EQ(cost_bytes(schedule, op), bytes_of(4096, DType::f32));
    }
  }
}

TEST(SweepSizes, SpanTheRangeAboutOneADoubling) {
  EXPECT_EQ(sweep_sizes(range(1000, 8000), 2, 10),
            (std::vector<std::int64_t>{1000, 2000, 4000, 8000}));
  EXPECT_EQ(sweep_sizes(range(1000, 1000), 2, 10), (std::vector<std::int64_t>{1000}));
}

TEST(SweepSizes, KeepBothEndsWithinTheLimitAndAreMultiplesOfTheShards) {
  for (const int shard : {1, 2, 3, 8}) {
    const auto sizes = sweep_sizes(range(24, 24 * 1'000'003LL), shard, 6);
    EXPECT_EQ(sizes.front(), 24);
    EXPECT_EQ(sizes.back(), 24 * 1'000'003LL);
    EXPECT_LE(sizes.size(), 6U);
    EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end(), std::less_equal<>()));
    for (const std::int64_t size : sizes) {
      EXPECT_EQ(size % shard, 0);
    }
  }
}

TEST(SweepSizes, OfAnEmptyUnitIsOneElementARank) {
  EXPECT_EQ(sweep_sizes(range(0, 0), 4, 5), (std::vector<std::int64_t>{4}));
}

TEST(CalibrationNeeds, CoverAllSchedules) {
  const ModelSpec model = test::small_llama(4);
  FsdpPolicy blocks = test::mixed_precision();
  FsdpPolicy all = blocks;
  all.wrap = WrapNone{};
  const Schedule first = test::schedule_of(model, blocks, 2);
  const Schedule second = test::schedule_of(model, all, 2);
  const std::vector<const Schedule*> schedules{&first, &second};
  const CalibrationNeeds result = calibration_needs(schedules);
  EXPECT_EQ(result.mesh.shard, 2);
  ASSERT_EQ(result.sizes.size(), 1U);
  std::int64_t smallest = second.plan.units[0].padded_numel;
  for (const FsdpUnit& unit : first.plan.units) {
    smallest = std::min(smallest, unit.padded_numel);
  }
  EXPECT_EQ(result.sizes[0].smallest, smallest);
  EXPECT_EQ(result.sizes[0].largest, second.plan.units[0].padded_numel);
  EXPECT_FALSE(result.gemms.empty());
  EXPECT_TRUE(std::is_sorted(result.gemms.begin(), result.gemms.end()));
  EXPECT_EQ(std::adjacent_find(result.gemms.begin(), result.gemms.end()), result.gemms.end());
}

TEST(CalibrationNeeds, RefuseDifferentMeshes) {
  const ModelSpec model = test::small_llama(2);
  const Schedule two = test::schedule_of(model, test::mixed_precision(), 2);
  const Schedule four = test::schedule_of(model, test::mixed_precision(), 4);
  const std::vector<const Schedule*> schedules{&two, &four};
  EXPECT_THROW(calibration_needs(schedules), ContractViolation);
}

}  // namespace
}  // namespace fsdp
