#include "bench/measure/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <set>

#include "tests/unit/bench/measure/thread_ranks.hpp"

namespace fsdp {
namespace {

using test::ThreadRanks;

/// A step that takes as long as its script says and writes its runs into a shared log.
class ScriptedStep final : public PreparedStep {
 public:
  ScriptedStep(int name, std::vector<std::int64_t> step_ns, std::vector<int>* log = nullptr)
      : name_(name), step_ns_(std::move(step_ns)), log_(log) {}

  void run(Timeline& timeline) override {
    timeline.step = {step_ns_[static_cast<std::size_t>(runs) % step_ns_.size()]};
    ++runs;
    if (log_ != nullptr) {
      log_->push_back(name_);
    }
  }
  std::optional<DataMismatch> run_verified() override {
    ++verified;
    return verified == wrong_on ? std::optional(mismatch) : std::nullopt;
  }
  Allocation allocation() const override { return {}; }

  int runs = 0;
  int verified = 0;
  int wrong_on = 0;  ///< which run_verified finds `mismatch`; 0: none
  DataMismatch mismatch;

 private:
  int name_;
  std::vector<std::int64_t> step_ns_;
  std::vector<int>* log_;
};

SamplerOptions options(int samples) {
  SamplerOptions result;
  result.stop.max_error = 0;
  result.stop.min_samples = samples;
  result.stop.max_samples = samples;
  result.warmup = 0;
  result.seed = 5;
  return result;
}

const Schedule nothing;  // scripted steps do not look at it

TEST(Sampler, DropsWarmUpAndKeepsTheRest) {
  SerialControlPlane control;
  ScriptedStep step(0, {900, 800, 10, 11, 12, 13, 14, 15, 16, 17});
  SamplerOptions sampling = options(8);
  sampling.warmup = 2;
  const SampledStep result = Sampler(control, sampling).measure({&step, &nothing});
  EXPECT_EQ(result.measurement.warmup, 2);
  EXPECT_EQ(result.measurement.step_ns, (std::vector<double>{10, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_DOUBLE_EQ(result.measurement.summary.median, 13.5);
  EXPECT_EQ(result.measurement.stopped, "sample cap 8; relative error 25.9 % > 0 %");
  EXPECT_EQ(result.timeline.step.value, 13);  // of the sample nearest to the median
}

TEST(Sampler, AStepIsAsSlowAsItsSlowestRank) {
  ThreadRanks ranks(3);
  std::array<Measurement, 3> results;
  ranks.run([&](ControlPlane& control) {
    const auto rank = static_cast<std::size_t>(control.rank());
    const std::vector<std::vector<std::int64_t>> times{{10, 40}, {20, 20}, {30, 10}};
    ScriptedStep step(0, times[rank]);
    results[rank] = Sampler(control, options(2)).measure({&step, &nothing}).measurement;
  });
  for (const Measurement& measurement : results) {
    EXPECT_EQ(measurement.step_ns, (std::vector<double>{30, 40}));
    EXPECT_EQ(measurement.rank_step_ns,
              (std::vector<std::vector<double>>{{10, 20, 30}, {40, 20, 10}}));
  }
}

/// Rank 1's clock is past the time cap after two blocks, rank 0's never. Both must stop together;
/// had each decided alone, rank 0 would wait for ever (and ctest's time-out would end it).
TEST(Sampler, RanksStopTogetherThoughTheirClocksDiffer) {
  ThreadRanks ranks(2);
  std::array<Measurement, 2> results;
  ranks.run([&](ControlPlane& control) {
    ScriptedStep step(0, {10});
    SamplerOptions sampling = options(1000);
    sampling.stop.min_samples = 1000;
    sampling.stop.max_time = {100};
    std::int64_t now = 0;
    const std::int64_t tick = control.rank() == 0 ? 0 : 50;
    Sampler sampler(control, sampling, [&] { return Nanoseconds{now += tick}; });
    results[static_cast<std::size_t>(control.rank())] =
        sampler.measure({&step, &nothing}).measurement;
  });
  EXPECT_EQ(results[0].stopped, "time cap 100 ns; 2 samples, 1000 needed");
  EXPECT_EQ(results[1].stopped, results[0].stopped);
  EXPECT_EQ(results[0].step_ns.size(), 2U);
}

TEST(Sampler, BlocksHoldEveryPlanOnceInTheSameShuffledOrderOnAllRanks) {
  ThreadRanks ranks(2);
  std::array<std::vector<int>, 2> logs;
  ranks.run([&](ControlPlane& control) {
    auto& log = logs[static_cast<std::size_t>(control.rank())];
    std::array<ScriptedStep, 3> steps{ScriptedStep(0, {10}, &log), ScriptedStep(1, {20}, &log),
                                      ScriptedStep(2, {30}, &log)};
    const std::vector<SampledPlan> plans{
        {&steps[0], &nothing}, {&steps[1], &nothing}, {&steps[2], &nothing}};
    const auto results = Sampler(control, options(20)).measure_interleaved(plans);
    EXPECT_EQ(results[2].measurement.step_ns, std::vector<double>(20, 30));
  });
  EXPECT_EQ(logs[0], logs[1]);
  ASSERT_EQ(logs[0].size(), 60U);
  std::set<std::vector<int>> orders;
  for (std::size_t block = 0; block < 20; ++block) {
    const auto first = logs[0].begin() + static_cast<std::ptrdiff_t>(3 * block);
    const std::vector<int> order(first, first + 3);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), std::array{0, 1, 2}.begin()));
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 4U);
}

TEST(BlockOrder, DependsOnSeedAndBlockOnly) {
  EXPECT_EQ(block_order(6, 1, 4), block_order(6, 1, 4));
  int different_seed = 0;
  int different_block = 0;
  for (int block = 0; block < 20; ++block) {
    different_seed += block_order(6, 1, block) != block_order(6, 2, block) ? 1 : 0;
    different_block += block_order(6, 1, block) != block_order(6, 1, block + 1) ? 1 : 0;
  }
  EXPECT_GE(different_seed, 18);
  EXPECT_GE(different_block, 18);
  EXPECT_TRUE(block_order(0, 1, 0).empty());
}

TEST(BlockOrder, EveryPlanComesFirstAboutAsOften) {
  std::array<int, 5> first{};
  for (int block = 0; block < 5000; ++block) {
    ++first[block_order(5, 3, block).front()];
  }
  for (const int count : first) {
    EXPECT_NEAR(count, 1000, 120);
  }
}

TEST(Sampler, VerifiesBeforeTimingAndEveryNthBlock) {
  SerialControlPlane control;
  ScriptedStep step(0, {10});
  SamplerOptions sampling = options(7);
  sampling.verify_every = 3;
  const auto result = Sampler(control, sampling).measure({&step, &nothing});
  EXPECT_EQ(step.verified, 3);
  EXPECT_EQ(result.measurement.verified_steps, 3);
  EXPECT_EQ(step.runs, 7);
}

TEST(Sampler, DoesNotClaimToHaveVerifiedWhatItDidNot) {
  SerialControlPlane control;
  ScriptedStep step(0, {10});
  SamplerOptions sampling = options(7);
  sampling.verification = Verification::none;
  EXPECT_EQ(Sampler(control, sampling).measure({&step, &nothing}).measurement.verified_steps, 0);
  EXPECT_EQ(step.verified, 0);
}

/// Ranks 1 and 2 find different mismatches in the second verification; all three throw rank 1's.
TEST(Sampler, WrongDataOnSomeRanksEndsAllWithTheSameMismatch) {
  ThreadRanks ranks(3);
  std::array<std::string, 3> messages;
  ranks.run([&](ControlPlane& control) {
    ScriptedStep step(0, {10});
    step.mismatch = {.rank = control.rank(),
                     .op = {4},
                     .unit = "layers.0",
                     .operation = "reduce_scatter",
                     .element = 17 * control.rank(),
                     .expected = 3,
                     .found = std::nan("")};
    step.wrong_on = control.rank() == 0 ? 0 : 2;
    SamplerOptions sampling = options(50);
    sampling.verify_every = 5;
    try {
      Sampler(control, sampling).measure({&step, &nothing});
      messages[static_cast<std::size_t>(control.rank())] = "no error";
    } catch (const WrongData& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::wrong_data);
      messages[static_cast<std::size_t>(control.rank())] = error.what();
    }
    EXPECT_EQ(step.runs, 5);
  });
  EXPECT_NE(messages[1].find("rank 1"), std::string::npos) << messages[1];
  EXPECT_NE(messages[1].find("element 17: expected 3, found nan"), std::string::npos);
  EXPECT_NE(messages[1].find("layers.0"), std::string::npos);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[2], messages[1]);
}

TEST(Sampler, TheTotalLimitCountsVerifyingAndWarmingUp) {
  SerialControlPlane control;
  ScriptedStep step(0, {10});
  SamplerOptions sampling = options(1000);
  sampling.stop.min_samples = 1000;
  sampling.stop.max_time = {1'000'000};
  sampling.total_limit = {100};
  std::int64_t now = 0;
  // Readings: 40 at the start, 80 before sampling (60 left), 120 as sampling starts, then 40 a
  // block.
  Sampler sampler(control, sampling, [&] { return Nanoseconds{now += 40}; });
  EXPECT_EQ(sampler.measure({&step, &nothing}).measurement.stopped,
            "time cap 60 ns; 2 samples, 1000 needed");
}

TEST(Sampler, ReportsTheFastestPlanSoFar) {
  SerialControlPlane control;
  ScriptedStep slow(0, {30});
  ScriptedStep fast(1, {20});
  SamplerOptions sampling = options(3);
  std::vector<int> blocks;
  sampling.on_batch = [&](const SamplingProgress& progress) {
    blocks.push_back(progress.blocks);
    EXPECT_EQ(progress.fastest, 1U);
    EXPECT_DOUBLE_EQ(progress.fastest_median_ns, 20);
  };
  const std::vector<SampledPlan> plans{{&slow, &nothing}, {&fast, &nothing}};
  Sampler(control, sampling).measure_interleaved(plans);
  EXPECT_EQ(blocks, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace fsdp
