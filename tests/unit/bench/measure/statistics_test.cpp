#include "bench/measure/statistics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

TEST(Median, OddAndEvenNumbers) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_THROW(median({}), ContractViolation);
}

/// Tables of the sign test's confidence interval for the median give these ranks (from 1): n=6:
/// 1 and 6, n=9: 2 and 8, n=12: 3 and 10, n=20: 6 and 15, n=30: 10 and 21, n=100: 40 and 61.
TEST(MedianRanks, PublishedRanks) {
  const std::vector<std::array<int, 3>> table{{6, 1, 6},   {7, 1, 7},    {8, 1, 8},
                                              {9, 2, 8},   {11, 2, 10},  {12, 3, 10},
                                              {20, 6, 15}, {30, 10, 21}, {100, 40, 61}};
  for (const auto& [n, low, high] : table) {
    const auto ranks = median_ranks(n);
    ASSERT_TRUE(ranks) << n;
    EXPECT_EQ(ranks->low + 1, low) << n;
    EXPECT_EQ(ranks->high + 1, high) << n;
  }
}

TEST(MedianRanks, NoneBelowSixSamples) {
  for (int n = 0; n < 6; ++n) {
    EXPECT_FALSE(median_ranks(n)) << n;
  }
}

/// The coverage is counted term by term from Pascal's triangle, not through the code under test.
TEST(MedianRanks, CoverAtLeastNinetyFivePercentAndNoRankIsGivenAway) {
  for (int n = 6; n <= 60; ++n) {
    std::vector<double> row{1};
    for (int i = 1; i <= n; ++i) {
      std::vector<double> next(row.size() + 1, 1);
      for (std::size_t k = 1; k < row.size(); ++k) {
        next[k] = row[k - 1] + row[k];
      }
      row = next;
    }
    const auto outside = [&](int below) {
      double sum = 0;
      for (int k = 0; k <= below; ++k) {
        sum += row[static_cast<std::size_t>(k)];
      }
      return 2 * sum / std::pow(2.0, n);
    };
    const auto ranks = median_ranks(n);
    ASSERT_TRUE(ranks);
    EXPECT_EQ(ranks->high, n - 1 - ranks->low);
    EXPECT_LE(outside(ranks->low), 0.05) << n;
    EXPECT_GT(outside(ranks->low + 1), 0.05) << n;
  }
}

TEST(MedianRanks, LargeNumbersDoNotUnderflow) {
  const auto ranks = median_ranks(5000);
  ASSERT_TRUE(ranks);
  EXPECT_NEAR(ranks->low, 2500 - 1.96 * std::sqrt(5000) / 2, 2);
}

TEST(Summary, OfNothing) {
  const Summary summary = summarise({});
  EXPECT_EQ(summary.n, 0);
  EXPECT_FALSE(summary.low);
}

TEST(Summary, OfTwelveValues) {
  const Summary summary = summarise({12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(summary.n, 12);
  EXPECT_DOUBLE_EQ(summary.median, 6.5);
  EXPECT_DOUBLE_EQ(*summary.low, 3);
  EXPECT_DOUBLE_EQ(*summary.high, 10);
  EXPECT_DOUBLE_EQ(*relative_error(summary), 3.5 / 6.5);
}

RC_GTEST_PROP(Summary, KeepsOrderAndIgnoresTheOrderOfSamples, ()) {
  auto values = *rc::gen::nonEmpty<std::vector<double>>(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 1'000'000), [](int v) { return static_cast<double>(v); })));
  RC_PRE(!values.empty());
  const Summary summary = summarise(values);
  if (summary.low) {
    RC_ASSERT(*summary.low <= summary.median);
    RC_ASSERT(summary.median <= *summary.high);
  }
  std::reverse(values.begin(), values.end());
  const Summary reversed = summarise(values);
  RC_ASSERT(reversed.median == summary.median);
  RC_ASSERT(reversed.low == summary.low);
}

TEST(Summary, IntervalCoversTheTrueMedian) {
  std::mt19937_64 generator(7);
  std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
  int covered = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> values(15);
    std::generate(values.begin(), values.end(), [&] { return skewed(generator); });
    const Summary summary = summarise(values);
    covered += *summary.low <= 1 && 1 <= *summary.high ? 1 : 0;
  }
  EXPECT_GE(covered, trials * 945 / 1000);
}

const std::vector<double> baseline{100, 101, 99, 100, 102, 98, 100, 100};

std::vector<double> shifted(double by) {
  std::vector<double> values = baseline;
  for (double& value : values) {
    value += by;
  }
  return values;
}

TEST(ComparePaired, FasterWhenTheWholeIntervalIsBelowZeroAndBeyondTheZone) {
  const Comparison comparison = compare_paired(shifted(-5), baseline, 0.01);
  EXPECT_EQ(comparison.verdict, "faster");
  EXPECT_DOUBLE_EQ(comparison.relative, -0.05);
  EXPECT_DOUBLE_EQ(comparison.difference_ns.median, -5);
}

TEST(ComparePaired, SlowerIsTheMirrorImage) {
  EXPECT_EQ(compare_paired(shifted(5), baseline, 0.01).verdict, "slower");
}

TEST(ComparePaired, InsideTheIndifferenceZoneNothingIsShown) {
  EXPECT_EQ(compare_paired(shifted(-0.9), baseline, 0.01).verdict, "no difference shown");
  EXPECT_EQ(compare_paired(shifted(-1.0), baseline, 0.01).verdict, "no difference shown");
  EXPECT_EQ(compare_paired(shifted(-1.1), baseline, 0.01).verdict, "faster");
}

TEST(ComparePaired, AnIntervalThatHoldsZeroShowsNothing) {
  std::vector<double> step = shifted(-5);
  step[3] = baseline[3] + 40;  // n = 8: the interval is the whole range of differences
  const Comparison comparison = compare_paired(step, baseline, 0.01);
  EXPECT_DOUBLE_EQ(comparison.difference_ns.median, -5);
  EXPECT_EQ(comparison.verdict, "no difference shown");
}

TEST(ComparePaired, FiveSamplesAreTooFew) {
  const std::vector<double> five{1, 1, 1, 1, 1};
  const std::vector<double> ten{10, 10, 10, 10, 10};
  EXPECT_EQ(compare_paired(five, ten, 0.01).verdict, "too few samples");
  EXPECT_EQ(compare_paired({}, {}, 0.01).verdict, "too few samples");
}

TEST(ComparePaired, PairingSeesWhatMediansHide) {
  // Both drift from 100 to 200 together; the step is always 3 faster than its partner.
  std::vector<double> step;
  std::vector<double> other;
  for (int i = 0; i < 11; ++i) {
    other.push_back(100 + 10 * i);
    step.push_back(other.back() - 3);
  }
  EXPECT_EQ(compare_paired(step, other, 0.01).verdict, "faster");
}

TEST(ComparePaired, NeedsPairs) {
  EXPECT_THROW(compare_paired(std::vector<double>{1}, baseline, 0.01), ContractViolation);
}

TEST(ComparePaired, RelativeInterval) {
  const Comparison comparison = compare_paired(shifted(-5), baseline, 0.01);
  const auto interval = relative_interval(comparison, 100);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->low, -0.05);
  EXPECT_DOUBLE_EQ(interval->high, -0.05);
  EXPECT_FALSE(relative_interval(compare_paired({}, {}, 0.01), 100));
}

/// Two names for one plan: a winner may be declared in at most 5 % of runs, here far below because
/// of the zone.
TEST(ComparePaired, IdenticalPlansSeldomDiffer) {
  std::mt19937_64 generator(11);
  std::normal_distribution<double> noise(1000, 30);
  int declared = 0;
  constexpr int runs = 1000;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> a(12);
    std::vector<double> b(12);
    std::generate(a.begin(), a.end(), [&] { return noise(generator); });
    std::generate(b.begin(), b.end(), [&] { return noise(generator); });
    declared += compare_paired(a, b, 0.01).verdict != "no difference shown" ? 1 : 0;
  }
  EXPECT_LE(declared, runs * 5 / 100);
}

}  // namespace
}  // namespace fsdp
