#include "tuner/evaluate/measured_evaluator.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"
#include "tests/unit/bench/measure/thread_ranks.hpp"
#include "tuner/evaluate/simulated_evaluator.hpp"

namespace fsdp {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

TEST(MemoryGroups, OneGroupWhereEverythingFits) {
  const std::vector<Bytes> needs{{3}, {4}, {5}};
  EXPECT_EQ(memory_groups(needs, std::nullopt), (Groups{{0, 1, 2}}));
  EXPECT_EQ(memory_groups(needs, Bytes{12}), (Groups{{0, 1, 2}}));
}

TEST(MemoryGroups, TheFirstIsInEveryGroup) {
  const std::vector<Bytes> needs{{3}, {4}, {5}, {2}};
  EXPECT_EQ(memory_groups(needs, Bytes{10}), (Groups{{0, 1}, {0, 2, 3}}));
}

TEST(MemoryGroups, WhatDoesNotFitBesideTheFirstIsInNone) {
  const std::vector<Bytes> needs{{3}, {8}, {5}};
  EXPECT_EQ(memory_groups(needs, Bytes{10}), (Groups{{0, 2}}));
  EXPECT_TRUE(memory_groups(needs, Bytes{2}).empty());
}

/// Steps last as long as their schedule has ops; two schedules may be refused.
class CountingExecutor final : public Executor {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<PreparedStep> prepare(const Schedule& schedule) override {
    if (schedule.plan.units.size() == unsupported_units) {
      throw Unsupported("no such units here");
    }
    if (schedule.plan.units.size() == broken_units) {
      throw EnvironmentError("cannot allocate");
    }
    return std::make_unique<Step>(static_cast<std::int64_t>(schedule.ops.size()));
  }

  std::size_t unsupported_units = 0;
  std::size_t broken_units = 0;

 private:
  class Step final : public PreparedStep {
   public:
    explicit Step(std::int64_t step_ns) : step_ns_(step_ns) {}
    void run(Timeline& timeline) override { timeline.step = {step_ns_}; }
    std::optional<DataMismatch> run_verified() override { return std::nullopt; }
    Allocation allocation() const override { return {.pools = {}, .peak_live = {step_ns_}}; }

   private:
    std::int64_t step_ns_;
  };

  Capabilities capabilities_;
};

class MeasuredEvaluatorTest : public ::testing::Test {
 protected:
  MeasuredEvaluatorTest() {
    for (const int blocks : {1, 2, 4}) {
      FsdpPolicy policy = test::mixed_precision();
      policy.wrap = WrapEvery{blocks};
      candidates_.push_back(
          make_candidate({model_, {.replicate = 1, .shard = 2}, Batch{}}, policy));
    }
    for (const Candidate& candidate : candidates_) {
      pointers.push_back(&candidate);
    }
    options.sampler.stop.max_samples = 6;
    options.sampler.warmup = 0;
  }

  MeasuringOptions options;
  std::vector<const Candidate*> pointers;

 private:
  ModelSpec model_ = test::small_llama(4);
  std::vector<Candidate> candidates_;
};

TEST_F(MeasuredEvaluatorTest, MeasuresAndComparesWithTheFirst) {
  CountingExecutor executor;
  SerialControlPlane control;
  const auto outcomes = MeasuredEvaluator(executor, control, options).evaluate(pointers);
  ASSERT_EQ(outcomes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& measured = std::get<Measured>(outcomes[i]);
    const auto ops = static_cast<double>(pointers[i]->schedule.ops.size());
    EXPECT_DOUBLE_EQ(measured.step_ns, ops);
    EXPECT_EQ(measured.measurement->verified_steps, 1);
    EXPECT_DOUBLE_EQ(static_cast<double>(measured.allocation->peak_live.value), ops);
    EXPECT_EQ(measured.against_first.has_value(), i > 0);
  }
  EXPECT_EQ(std::get<Measured>(outcomes[2]).against_first->verdict, "faster");
}

TEST_F(MeasuredEvaluatorTest, RefusalsAreValues) {
  CountingExecutor executor;
  executor.unsupported_units = pointers[1]->schedule.plan.units.size();
  executor.broken_units = pointers[2]->schedule.plan.units.size();
  SerialControlPlane control;
  const auto outcomes = MeasuredEvaluator(executor, control, options).evaluate(pointers);
  EXPECT_TRUE(std::holds_alternative<Measured>(outcomes[0]));
  EXPECT_EQ(std::get<Infeasible>(outcomes[1]).why, "no such units here");
  EXPECT_EQ(std::get<Failed>(outcomes[2]).why, "rank 0: cannot allocate");
}

TEST_F(MeasuredEvaluatorTest, ARefusalOnOneRankIsTheOutcomeOfAll) {
  test::ThreadRanks ranks(2);
  std::array<std::vector<Outcome>, 2> outcomes;
  ranks.run([&](ControlPlane& control) {
    CountingExecutor executor;
    executor.broken_units = control.rank() == 1 ? pointers[1]->schedule.plan.units.size() : 0;
    outcomes[static_cast<std::size_t>(control.rank())] =
        MeasuredEvaluator(executor, control, options).evaluate(pointers);
  });
  for (const auto& of_rank : outcomes) {
    EXPECT_EQ(std::get<Failed>(of_rank[1]).why, "rank 1: cannot allocate");
    EXPECT_TRUE(std::holds_alternative<Measured>(of_rank[2]));
  }
}

TEST_F(MeasuredEvaluatorTest, WhatTheMachineCannotHoldIsOutOfMemory) {
  CountingExecutor executor;
  SerialControlPlane control;
  const Bytes first = pointers[0]->memory.arenas;
  options.memory = first + pointers[1]->memory.arenas;  // the third is larger than the second
  const auto outcomes = MeasuredEvaluator(executor, control, options).evaluate(pointers);
  EXPECT_TRUE(std::holds_alternative<Measured>(outcomes[1]));
  EXPECT_EQ(std::get<OutOfMemory>(outcomes[2]).needed, pointers[2]->memory.arenas);
}

TEST_F(MeasuredEvaluatorTest, TheSimulatorAnswersThroughTheSameInterface) {
  SimulatedEvaluator simulated(test::cluster(2));
  Evaluator& evaluator = simulated;
  const auto outcomes = evaluator.evaluate(pointers);
  for (const Outcome& outcome : outcomes) {
    EXPECT_FALSE(std::get<Measured>(outcome).measurement);
    EXPECT_EQ(to_text(outcome), "simulated");
  }
  SimulatedEvaluator elsewhere(test::cluster(8));
  EXPECT_TRUE(std::holds_alternative<Infeasible>(elsewhere.evaluate(pointers).front()));
}

}  // namespace
}  // namespace fsdp
