// Robust summaries of step times. Medians with rank-based intervals, because step times are neither
// normal nor symmetric; comparisons from paired differences, because ranks and minutes differ.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/record/measurement.hpp"

namespace fsdp {

/// Fewest samples for which a 95 % interval of the median exists: with five, even the whole range
/// covers the median with only 93.75 %.
inline constexpr int interval_samples = 6;

/// Mean of the two middle values when their number is even. Needs at least one value.
double median(std::vector<double> values);

/// Places (from 0) in the sorted sample that bound the median with at least 95 % coverage.
struct MedianRanks {
  int low = 0;
  int high = 0;
};
/// The largest l with P(Binomial(n, 1/2) < l) <= 2.5 %, and its mirror image; nothing below
/// interval_samples.
std::optional<MedianRanks> median_ranks(int n);

/// All zero for an empty sample.
Summary summarise(const std::vector<double>& values);

/// Half-width of the interval over the median; nothing where there is no interval.
std::optional<double> relative_error(const Summary& summary);

/// Pairs `step_ns[i]` with `baseline_ns[i]`. `indifference` is a fraction of the baseline's median.
/// "faster" or "slower" only when the whole interval of the differences lies on one side of zero
/// and their median exceeds the indifference zone.
Comparison compare_paired(std::span<const double> step_ns, std::span<const double> baseline_ns,
                          double indifference);

/// The interval of `comparison` as fractions of the baseline; nothing where there is none.
struct RelativeInterval {
  double low = 0;
  double high = 0;
};
std::optional<RelativeInterval> relative_interval(const Comparison& comparison, double baseline_ns);

}  // namespace fsdp
