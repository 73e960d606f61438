#include "core/record/folded_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "core/schedule/text.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(stream, line);) {
    out.push_back(line);
  }
  return out;
}

/// Ops that the folded text stands for: its op lines, and what each repeat leaves out.
std::size_t ops_told(const std::vector<std::string>& lines) {
  static const std::regex repeat(
      R"(  \.\.\. (?:this line|these (\d+) lines) again (\d+) times?, for u\d+(?: \.\. u\d+)?: #\d+ to #\d+)");
  std::size_t sum = 0;
  for (const std::string& line : lines) {
    std::smatch match;
    if (line.starts_with("#")) {
      ++sum;
    } else if (std::regex_match(line, match, repeat)) {
      const std::size_t period = match[1].matched ? std::stoul(match[1]) : 1;
      sum += period * std::stoul(match[2]);
    }
  }
  return sum;
}

class FoldedSchedule : public ::testing::TestWithParam<int> {};

TEST_P(FoldedSchedule, StandsForEveryOp) {
  for (const Profile profile : {Profile::fsdp1, Profile::fsdp2}) {
    FsdpPolicy policy = mixed_precision();
    policy.profile = profile;
    const Schedule schedule = schedule_of(small_llama(GetParam()), policy, 4);
    EXPECT_EQ(ops_told(lines_of(folded_text(schedule))), schedule.ops.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, FoldedSchedule, ::testing::Values(1, 2, 3, 7, 126));

TEST(FoldedText, ManyEqualBlocksAreAsReadableAsFew) {
  const auto few = lines_of(folded_text(schedule_of(small_llama(10), mixed_precision(), 4)));
  const auto many = lines_of(folded_text(schedule_of(small_llama(126), mixed_precision(), 4)));
  EXPECT_EQ(many.size(), few.size());
  EXPECT_LT(many.size(), 130U);
}

TEST(FoldedText, ItsLinesAreThoseOfTheWholeText) {
  const Schedule schedule = schedule_of(small_llama(9), mixed_precision(), 4);
  const std::string whole = to_text(schedule);
  for (const std::string& line : lines_of(folded_text(schedule))) {
    if (line.starts_with("#")) {
      EXPECT_NE(whole.find(line + "\n"), std::string::npos) << line;
    }
  }
}

TEST(FoldedText, NamesUnitsThatAreAlikeOnce) {
  const std::string text = folded_text(schedule_of(small_llama(9), mixed_precision(), 4));
  EXPECT_NE(text.find("\nu1 .. u9 model.layers.0 .. 8 numel="), std::string::npos) << text;
}

TEST(FoldedText, BlocksThatDifferAreNotFolded) {
  FsdpPolicy policy = mixed_precision();
  policy.wrap = WrapPartition{{1, 2, 3}};
  const Schedule schedule = schedule_of(small_llama(6), policy, 4);
  EXPECT_EQ(folded_text(schedule).find("again"), std::string::npos);
}

}  // namespace
}  // namespace fsdp
