#include "bench/measure/stopping_criterion.hpp"

#include <gtest/gtest.h>

#include "bench/measure/statistics.hpp"

namespace fsdp {
namespace {

StopConfig config() {
  StopConfig stop;
  stop.max_error = 0.02;
  stop.max_time = {20'000'000'000};
  stop.min_samples = 6;
  stop.max_samples = 10;
  return stop;
}

Evidence evidence(const std::vector<double>& values, std::int64_t elapsed_ns) {
  return {summarise(values), {elapsed_ns}};
}

TEST(RelativeError, GoesOnWhileNothingIsMet) {
  const RelativeErrorCriterion criterion(config());
  EXPECT_FALSE(criterion.reason_to_stop(evidence({100, 100, 100}, 0)));
  EXPECT_FALSE(criterion.reason_to_stop(evidence({100, 110, 90, 100, 120, 80}, 0)));
}

TEST(RelativeError, StopsOnPrecision) {
  const auto reason =
      RelativeErrorCriterion(config()).reason_to_stop(evidence({100, 101, 99, 100, 100, 101}, 0));
  EXPECT_EQ(reason, "relative error 1 % <= 2 %");
}

TEST(RelativeError, PrecisionNeedsTheLeastNumberOfSamples) {
  StopConfig stop = config();
  stop.min_samples = 8;
  EXPECT_FALSE(RelativeErrorCriterion(stop).reason_to_stop(
      evidence({100, 100, 100, 100, 100, 100, 100}, 0)));
}

TEST(RelativeError, TheSampleCapNamesTheUnmetCondition) {
  const auto reason = RelativeErrorCriterion(config()).reason_to_stop(
      evidence({100, 140, 60, 100, 140, 60, 100, 140, 60, 100}, 0));
  EXPECT_EQ(reason, "sample cap 10; relative error 40 % > 2 %");
}

TEST(RelativeError, TheTimeCapNamesTheUnmetCondition) {
  const RelativeErrorCriterion criterion(config());
  EXPECT_EQ(criterion.reason_to_stop(evidence({100, 100, 100, 100}, 20'000'000'000)),
            "time cap 20 s; 4 samples, 6 needed");
  EXPECT_EQ(criterion.reason_to_stop(evidence({90, 110, 90, 110, 90, 110}, 20'000'000'000)),
            "time cap 20 s; relative error 10 % > 2 %");
  EXPECT_FALSE(criterion.reason_to_stop(evidence({100, 100, 100, 100}, 19'999'999'999)));
}

TEST(RelativeError, RefusesWhatNoNumberOfSamplesSatisfies) {
  StopConfig stop = config();
  stop.min_samples = 11;
  EXPECT_THROW(RelativeErrorCriterion{stop}, UsageError);
  stop.max_samples = 0;
  EXPECT_THROW(RelativeErrorCriterion{stop}, UsageError);
}

}  // namespace
}  // namespace fsdp
