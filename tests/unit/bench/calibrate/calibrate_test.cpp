#include "bench/calibrate/calibrate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "core/sim/simulate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/schedules.hpp"
#include "tests/unit/bench/measure/thread_ranks.hpp"

namespace fsdp {
namespace {

/// A machine whose true costs are known: the simulator's, with noise on every repetition.
class KnownMachine final : public Executor {
 public:
  KnownMachine(ClusterSpec cluster, double noise, unsigned seed)
      : cluster_(std::move(cluster)), noise_(noise), generator_(seed) {
    capabilities_.backend = "known";
    capabilities_.measures = true;
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<PreparedStep> prepare(const Schedule& schedule) override {
    ++prepared;
    return std::make_unique<Step>(*this, schedule);
  }

  int prepared = 0;
  int runs = 0;
  std::optional<DataMismatch> mismatch;

 private:
  class Step final : public PreparedStep {
   public:
    Step(KnownMachine& machine, const Schedule& schedule)
        : machine_(machine), schedule_(schedule), costs_(op_costs(schedule, machine.cluster_)) {}
    void run(Timeline& timeline) override {
      ++machine_.runs;
      std::vector<Nanoseconds> costs = costs_;
      std::normal_distribution<double> deviation;
      for (Nanoseconds& cost : costs) {
        cost.value = static_cast<std::int64_t>(
            static_cast<double>(cost.value) *
            std::max(0.1, 1 + machine_.noise_ * deviation(machine_.generator_)));
      }
      timeline = simulate(schedule_, costs, {0});
    }
    std::optional<DataMismatch> run_verified() override { return machine_.mismatch; }
    Allocation allocation() const override { return {}; }

   private:
    KnownMachine& machine_;
    Schedule schedule_;
    std::vector<Nanoseconds> costs_;
  };

  ClusterSpec cluster_;
  Capabilities capabilities_;
  double noise_;
  std::mt19937_64 generator_;
};

Schedule block_schedule(int every) {
  FsdpPolicy policy = test::mixed_precision();
  policy.wrap = WrapEvery{every};
  return test::schedule_of(test::small_llama(4), policy, 2);
}

CalibrationRequest request() {
  const Schedule small = block_schedule(1);
  const Schedule large = block_schedule(4);
  const std::vector<const Schedule*> schedules{&small, &large};
  CalibrationRequest result;
  result.needs = calibration_needs(schedules);
  return result;
}

TEST(Calibrate, RecoversTheCostsOfAKnownMachine) {
  ClusterSpec truth = test::cluster(2);
  truth.gemm_rate = {2e11};
  truth.gemm_latency = {3000};
  KnownMachine machine(truth, 0.02, 1);
  SerialControlPlane control;
  const ClusterSpec found = calibrate(machine, control, request());
  EXPECT_EQ(found.origin, "calibrated on this machine");
  EXPECT_EQ(found.ranks, 2);
  // Sizes between the calibrated ones are the test: units of two blocks were never measured.
  const Schedule held_out = block_schedule(2);
  const auto expected = op_costs(held_out, truth);
  const auto predicted = op_costs(held_out, found);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(predicted[i].value), static_cast<double>(expected[i].value),
                0.05 * static_cast<double>(expected[i].value) + 1)
        << name_of(held_out.ops[i]);
  }
  const auto step = static_cast<double>(simulate(held_out, truth).step.value);
  EXPECT_NEAR(static_cast<double>(simulate(held_out, found).step.value), step, 0.03 * step);
}

TEST(Calibrate, EveryShapeHasItsOwnTime) {
  KnownMachine machine(test::cluster(2), 0, 1);
  SerialControlPlane control;
  const CalibrationRequest asked = request();
  const ClusterSpec found = calibrate(machine, control, asked);
  EXPECT_EQ(found.gemms.size(), asked.needs.gemms.size());
  EXPECT_GT(found.gemm_rate.value, 0);
}

TEST(Calibrate, SpendsNoMoreRepetitionsThanTheBudgetAllows) {
  SerialControlPlane control;
  CalibrationRequest asked = request();
  asked.min_repetitions = 2;
  asked.max_repetitions = 9;
  asked.budget = {0};
  KnownMachine hurried(test::cluster(2), 0, 1);
  calibrate(hurried, control, asked);
  EXPECT_EQ(hurried.runs, hurried.prepared * (2 + 1));  // one warms up
  asked.budget = {3'600'000'000'000};
  KnownMachine patient(test::cluster(2), 0, 1);
  calibrate(patient, control, asked);
  EXPECT_EQ(patient.runs, patient.prepared * (9 + 1));
}

TEST(Calibrate, TakesTheSlowestRankAndAgreesOnAllRanks) {
  test::ThreadRanks ranks(2);
  std::array<ClusterSpec, 2> found;
  ranks.run([&](ControlPlane& control) {
    ClusterSpec truth = test::cluster(2);
    if (control.rank() == 1) {
      truth.collectives[0].curve = test::line(500'000, 10'000);
    }
    KnownMachine machine(truth, 0.05, static_cast<unsigned>(control.rank()));
    found[static_cast<std::size_t>(control.rank())] = calibrate(machine, control, request());
  });
  for (std::size_t i = 0; i < found[0].collectives.size(); ++i) {
    const auto& ours = found[0].collectives[i];
    const auto& theirs = found[1].collectives[i];
    ASSERT_EQ(ours.curve.points.size(), theirs.curve.points.size());
    for (std::size_t k = 0; k < ours.curve.points.size(); ++k) {
      EXPECT_EQ(ours.curve.points[k].time, theirs.curve.points[k].time);
    }
    if (ours.kind == CollectiveKind::all_gather) {
      EXPECT_GT(ours.curve.points.front().time.value, 400'000);
    }
  }
}

TEST(Calibrate, WrongDataHasNoSpeed) {
  test::ThreadRanks ranks(2);
  ranks.run([&](ControlPlane& control) {
    KnownMachine machine(test::cluster(2), 0, 1);
    if (control.rank() == 1) {
      machine.mismatch =
          DataMismatch{.rank = 1, .op = {2}, .unit = "sweep", .operation = "all_gather"};
    }
    EXPECT_THROW(calibrate(machine, control, request()), WrongData);
    EXPECT_EQ(machine.runs, 0);
  });
}

TEST(CostCurve, TakesMediansAndNeverDecreases) {
  const CostCurve curve = cost_curve({{{10}, {5, 1, 3}},       // 3
                                      {{20}, {9}},             // 9, pooled with
                                      {{30}, {5, 5}},          // 5: both 7
                                      {{40}, {20, 22, 90}}});  // 22
  ASSERT_EQ(curve.points.size(), 4U);
  const std::array<std::int64_t, 4> times{3, 7, 7, 22};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(curve.points[i].bytes.value, static_cast<std::int64_t>(10 * (i + 1)));
    EXPECT_EQ(curve.points[i].time.value, times[i]);
  }
}

TEST(CostCurve, PoolsBackwardsAsFarAsItMust) {
  const CostCurve curve = cost_curve({{{1}, {6}}, {{2}, {7}}, {{3}, {2}}});
  for (const auto& point : curve.points) {
    EXPECT_EQ(point.time.value, 5);
  }
}

}  // namespace
}  // namespace fsdp
