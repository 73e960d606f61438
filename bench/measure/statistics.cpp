#include "bench/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/units/error.hpp"

namespace fsdp {

namespace {

constexpr double tail = 0.025;

/// P(Binomial(n, 1/2) = k), through logarithms so that large n does not underflow early.
double binomial_half(int n, int k) {
  const double log_choose = std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
  return std::exp(log_choose - n * std::log(2.0));
}

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
}

std::string verdict_of(const Summary& difference, double zone_ns) {
  if (!difference.low) {
    return "too few samples";
  }
  if (*difference.high < 0 && difference.median < -zone_ns) {
    return "faster";
  }
  if (*difference.low > 0 && difference.median > zone_ns) {
    return "slower";
  }
  return "no difference shown";
}

}  // namespace

double median(std::vector<double> values) {
  expects(!values.empty(), "a median needs at least one value");
  std::sort(values.begin(), values.end());
  return median_of_sorted(values);
}

std::optional<MedianRanks> median_ranks(int n) {
  if (n < interval_samples) {
    return std::nullopt;
  }
  int below = 0;  // values that may lie under the interval
  double cumulative = binomial_half(n, 0);
  while (cumulative + binomial_half(n, below + 1) <= tail) {
    ++below;
    cumulative += binomial_half(n, below);
  }
  return MedianRanks{below, n - 1 - below};
}

Summary summarise(const std::vector<double>& values) {
  Summary summary{
      .n = static_cast<int>(values.size()), .median = 0, .low = std::nullopt, .high = std::nullopt};
  if (values.empty()) {
    return summary;
  }
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  summary.median = median_of_sorted(sorted);
  if (const auto ranks = median_ranks(summary.n)) {
    summary.low = sorted[static_cast<std::size_t>(ranks->low)];
    summary.high = sorted[static_cast<std::size_t>(ranks->high)];
  }
  return summary;
}

std::optional<double> relative_error(const Summary& summary) {
  if (!summary.low || !summary.high || summary.median <= 0) {
    return std::nullopt;
  }
  return 0.5 * (*summary.high - *summary.low) / summary.median;
}

Comparison compare_paired(std::span<const double> step_ns, std::span<const double> baseline_ns,
                          double indifference) {
  expects(step_ns.size() == baseline_ns.size(), "paired samples come in equal numbers");
  Comparison comparison{.difference_ns = {}, .relative = 0, .verdict = "too few samples"};
  if (step_ns.empty()) {
    return comparison;
  }
  std::vector<double> differences(step_ns.size());
  for (std::size_t i = 0; i < step_ns.size(); ++i) {
    differences[i] = step_ns[i] - baseline_ns[i];
  }
  const double baseline = median({baseline_ns.begin(), baseline_ns.end()});
  comparison.difference_ns = summarise(differences);
  comparison.relative = baseline > 0 ? comparison.difference_ns.median / baseline : 0;
  comparison.verdict = verdict_of(comparison.difference_ns, indifference * baseline);
  return comparison;
}

std::optional<RelativeInterval> relative_interval(const Comparison& comparison,
                                                  double baseline_ns) {
  const Summary& difference = comparison.difference_ns;
  if (!difference.low || !difference.high || baseline_ns <= 0) {
    return std::nullopt;
  }
  return RelativeInterval{*difference.low / baseline_ns, *difference.high / baseline_ns};
}

}  // namespace fsdp
