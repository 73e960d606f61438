#include "tuner/search/decision.hpp"

#include <gtest/gtest.h>

#include "tests/unit/tuner/trials.hpp"

namespace fsdp {
namespace {

using test::measure;
using test::samples;
using test::trial;

std::vector<Trial> three() {
  return {trial({.label = "D", .predicted_ns = 100, .is_default = true}),
          trial({.label = "A", .predicted_ns = 90}), trial({.label = "B", .predicted_ns = 95})};
}

TEST(Decide, AShownDifferenceWins) {
  auto trials = three();
  measure(trials[0], samples(1000));
  measure(trials[1], samples(940), samples(1000));
  measure(trials[2], samples(1010), samples(1000));
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::faster);
  EXPECT_EQ(decision.winner, 1U);
  EXPECT_EQ(decision.default_place, 0U);
  EXPECT_EQ(decision.compared, 3);
  EXPECT_FALSE(decision.simulated);
  EXPECT_EQ(decision.sentence, "A is 6.0 % [6.0, 6.0] faster than the default (D)");
  EXPECT_EQ(exit_code(decision), ExitCode::ok);
}

TEST(Decide, ADifferenceNotShownKeepsTheDefault) {
  auto trials = three();
  measure(trials[0], samples(1000));
  measure(trials[1], samples(995), samples(1000));
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::not_shown);
  EXPECT_EQ(decision.fastest, 1U);
  EXPECT_EQ(decision.winner, 0U);
  EXPECT_NE(decision.sentence.find("no difference shown between A"), std::string::npos);
  EXPECT_NE(decision.sentence.find("keep the default"), std::string::npos);
  EXPECT_EQ(exit_code(decision), ExitCode::ok);
}

TEST(Decide, TheDefaultMayBeTheFastest) {
  auto trials = three();
  measure(trials[0], samples(900));
  measure(trials[1], samples(940), samples(900));
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::default_fastest);
  EXPECT_EQ(decision.winner, 0U);
  EXPECT_EQ(decision.sentence, "the default (D) is the fastest of 2 measured: keep it");
}

TEST(Decide, TooFewSamplesAreNoVerdict) {
  auto trials = three();
  measure(trials[0], {1000, 1000});
  measure(trials[1], {500, 500}, {1000, 1000});
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::too_few_samples);
  EXPECT_EQ(decision.winner, 0U);
  EXPECT_EQ(exit_code(decision), ExitCode::no_verdict);
}

TEST(Decide, TooFewSamplesDoNotShowThatTheDefaultIsTheFastest) {
  auto trials = three();
  measure(trials[0], {500, 500, 500});
  measure(trials[1], {1000, 1000, 1000}, {500, 500, 500});
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::too_few_samples);
  EXPECT_EQ(decision.sentence.find("too few samples (3, 6 needed)"), 0U) << decision.sentence;
}

TEST(Decide, WithoutTheDefaultTheFastestOfTheRest) {
  auto trials = three();
  trials[0].dropped = "does not fit: needs 9 GiB";
  measure(trials[1], samples(940));
  measure(trials[2], samples(900));
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::default_missing);
  EXPECT_EQ(decision.winner, 2U);
  EXPECT_EQ(decision.sentence, "the default did not run; B is the fastest of 2 measured");
}

TEST(Decide, AMeasurementOutranksAPrediction) {
  auto trials = three();  // A is predicted to be the fastest
  measure(trials[0], samples(1000));
  measure(trials[1], samples(1200), samples(1000));
  measure(trials[2], samples(900), samples(1000));
  EXPECT_EQ(decide(trials, 0.01).winner, 2U);
}

TEST(Decide, PredictionsAreJudgedByTheZoneAndCalledWhatTheyAre) {
  auto trials = three();
  const Decision decision = decide(trials, 0.01);
  EXPECT_TRUE(decision.simulated);
  EXPECT_EQ(decision.winner, 1U);
  EXPECT_EQ(decision.sentence, "A is predicted to be 10.0 % faster than the default (D)");
  EXPECT_EQ(decide(trials, 0.2).winner, 0U);
  EXPECT_EQ(decide(trials, 0.2).kind, Decision::Kind::not_shown);
}

TEST(Decide, NothingRan) {
  auto trials = three();
  for (Trial& each : trials) {
    each.measured = Failed{"no memory"};
  }
  const Decision decision = decide(trials, 0.01);
  EXPECT_EQ(decision.kind, Decision::Kind::nothing_ran);
  EXPECT_FALSE(decision.winner);
  EXPECT_EQ(exit_code(decision), ExitCode::environment);
}

TEST(OutcomeText, SaysWhatHappened) {
  Trial each = trial({.label = "A"});
  each.measured = OutOfMemory{{2048}, {1024}};
  EXPECT_EQ(outcome_text(each), "does not fit: needs 2 KiB a rank, 1 KiB available");
  each.measured = Failed{"a disk burned"};
  EXPECT_EQ(outcome_text(each), "failed: a disk burned");
  measure(each, samples(10));
  EXPECT_EQ(outcome_text(each), "measured");
}

}  // namespace
}  // namespace fsdp
