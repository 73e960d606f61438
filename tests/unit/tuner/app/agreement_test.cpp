#include "tuner/app/agreement.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/schedules.hpp"
#include "tests/unit/bench/measure/thread_ranks.hpp"

namespace fsdp {
namespace {

using test::ThreadRanks;

LoadedConfig good(double indifference = 0.01) {
  LoadedConfig loaded;
  loaded.config.emplace();
  loaded.config->tune.indifference = indifference;
  return loaded;
}

LoadedConfig bad(const std::string& message, ExitCode code = ExitCode::usage) {
  return {std::nullopt, code, message};
}

/// The failure that all ranks came to, which must be the same on each.
std::optional<SharedFailure> agreed(const std::vector<LoadedConfig>& loaded) {
  ThreadRanks ranks(static_cast<int>(loaded.size()));
  std::vector<std::optional<SharedFailure>> results(loaded.size());
  ranks.run([&](ControlPlane& control) {
    const auto rank = static_cast<std::size_t>(control.rank());
    results[rank] = agree_on_config(control, loaded[rank]);
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.has_value(), results[0].has_value());
    if (result && results[0]) {
      EXPECT_EQ(result->message, results[0]->message);
      EXPECT_EQ(result->code, results[0]->code);
    }
  }
  return results[0];
}

TEST(AgreeOnConfig, EqualConfigurationsAreFine) { EXPECT_FALSE(agreed({good(), good(), good()})); }

TEST(AgreeOnConfig, AnErrorOfAllRanksIsSaidOnce) {
  const auto failure = agreed({bad("x.yaml: no such file"), bad("x.yaml: no such file")});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ExitCode::usage);
  EXPECT_EQ(failure->message, "x.yaml: no such file");
}

TEST(AgreeOnConfig, AnErrorOfSomeRanksNamesThemAndTheWorstCodeWins) {
  const auto failure = agreed({good(), bad("gone", ExitCode::environment), bad("typo"),
                               bad("gone", ExitCode::environment)});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, worst(ExitCode::usage, ExitCode::environment));
  EXPECT_EQ(failure->message, "ranks 1,3: gone\nrank 2: typo");
}

TEST(AgreeOnConfig, RanksThatReadSomethingElseAreNamed) {
  const auto failure = agreed({good(), good(0.02), good(), good(0.02)});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ExitCode::environment);
  EXPECT_EQ(failure->message.find("ranks 1,3 read another configuration than rank 0"), 0U)
      << failure->message;
}

TEST(AgreeOnPlans, DifferentPlansEndAllRanks) {
  ThreadRanks ranks(2);
  ranks.run([](ControlPlane& control) {
    EXPECT_NO_THROW(agree_on_plans(control, {"a", "b"}));
    const std::vector<std::string> own{control.rank() == 0 ? "a" : "c"};
    EXPECT_THROW(agree_on_plans(control, own), EnvironmentError);
  });
}

TEST(AgreeOnExit, TheWorstWins) {
  ThreadRanks ranks(3);
  ranks.run([](ControlPlane& control) {
    constexpr std::array codes{ExitCode::ok, ExitCode::wrong_data, ExitCode::no_verdict};
    EXPECT_EQ(agree_on_exit(control, codes[static_cast<std::size_t>(control.rank())]),
              ExitCode::wrong_data);
  });
}

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({4}), "4");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace fsdp
