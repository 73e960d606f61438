#include "tuner/search/prune.hpp"

#include <gtest/gtest.h>

#include "tests/unit/tuner/trials.hpp"

namespace fsdp {
namespace {

using test::trial;

std::vector<Trial> five() {
  return {
      trial({.label = "default",
             .arenas = 50,
             .predicted_ns = 100,
             .unit_blocks = 1,
             .is_default = true}),
      trial({.label = "b", .arenas = 60, .predicted_ns = 80, .unit_blocks = 2}),
      trial({.label = "c", .arenas = 90, .predicted_ns = 60, .unit_blocks = 3}),
      trial({.label = "d", .arenas = 70, .predicted_ns = 90, .unit_blocks = 4}),
      trial({.label = "e", .arenas = 40, .predicted_ns = 120, .unit_blocks = 5}),
  };
}

using Places = std::vector<std::size_t>;

TEST(Prune, KeepsTheDefaultAndTheFastestPredictions) {
  auto trials = five();
  EXPECT_EQ(prune(trials, {.memory_limit = {}, .available = {}, .survivors = 3}),
            (Places{0, 2, 1}));
  EXPECT_EQ(trials[3].dropped, "pruned by simulation");
  EXPECT_EQ(trials[4].dropped, "pruned by simulation");
  EXPECT_TRUE(trials[0].dropped.empty());
  EXPECT_EQ(outcome_text(trials[3]), "pruned by simulation");
}

TEST(Prune, DropsWhatTheLimitDoesNotAllow) {
  auto trials = five();
  EXPECT_EQ(prune(trials, {.memory_limit = Bytes{69}, .available = {}, .survivors = 6}),
            (Places{0, 1, 4}));
  EXPECT_EQ(trials[2].dropped, "does not fit: needs 90 B a rank, memory.limit is 69 B");
}

TEST(Prune, TheLimitCountsTheOptimizerAndTheMachineDoesNot) {
  auto trials = five();
  trials[1].candidate.memory.optimizer = {20};
  const PruneLimits limit{.memory_limit = Bytes{75}, .available = {}, .survivors = 6};
  EXPECT_EQ(prune(trials, limit), (Places{0, 3, 4}));
  trials = five();
  trials[1].candidate.memory.optimizer = {20};
  const PruneLimits machine{.memory_limit = {}, .available = Bytes{75}, .survivors = 6};
  EXPECT_EQ(prune(trials, machine), (Places{0, 1, 3, 4}));
  EXPECT_EQ(trials[2].dropped, "does not fit: a replay allocates 90 B a rank, 75 B available");
}

TEST(Prune, GoesOnWithoutADefaultThatDoesNotFit) {
  auto trials = five();
  EXPECT_EQ(prune(trials, {.memory_limit = Bytes{45}, .available = {}, .survivors = 6}),
            (Places{4}));
  EXPECT_NE(trials[0].dropped.find("does not fit"), std::string::npos);
}

TEST(Prune, WhenNothingFitsItSaysWhatWould) {
  auto trials = five();
  try {
    prune(trials, {.memory_limit = Bytes{39}, .available = {}, .survivors = 6});
    FAIL() << "nothing fits";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
    EXPECT_NE(text.find("memory.limit 39 B"), std::string::npos) << text;
    EXPECT_NE(text.find("the smallest (e) needs 40 B"), std::string::npos) << text;
    EXPECT_NE(text.find("more ranks"), std::string::npos) << text;
  }
}

TEST(Prune, WhenTheMachineIsTooSmallTheUserIsNotBlamed) {
  auto trials = five();
  EXPECT_THROW(prune(trials, {.memory_limit = {}, .available = Bytes{39}, .survivors = 6}),
               EnvironmentError);
}

TEST(Prune, PlansTheModelCannotTellApartWaitForPlacesThatAreLeft) {
  auto trials = five();
  trials.push_back(
      trial({.label = "c, deeper prefetch", .arenas = 95, .predicted_ns = 60.3, .unit_blocks = 3}));
  EXPECT_EQ(prune(trials, {.memory_limit = {}, .available = {}, .survivors = 3}),
            (Places{0, 2, 1}));
  for (Trial& each : trials) {
    each.dropped.clear();
  }
  EXPECT_EQ(prune(trials, {.memory_limit = {}, .available = {}, .survivors = 6}),
            (Places{0, 2, 1, 3, 4, 5}));
}

TEST(Prune, ADifferenceThatTheModelSeesIsNoDuplicate) {
  auto trials = five();
  trials.push_back(
      trial({.label = "c, deeper prefetch", .arenas = 95, .predicted_ns = 65, .unit_blocks = 3}));
  EXPECT_EQ(prune(trials, {.memory_limit = {}, .available = {}, .survivors = 3}),
            (Places{0, 2, 5}));
}

TEST(Prune, WhatTheModelDoesNotKnowComesLast) {
  auto trials = five();
  trials[2].predicted = Infeasible{"no cost curve"};
  EXPECT_EQ(prune(trials, {.memory_limit = {}, .available = {}, .survivors = 4}),
            (Places{0, 1, 3, 4}));
  EXPECT_EQ(trials[2].dropped, "infeasible: no cost curve");
}

}  // namespace
}  // namespace fsdp
