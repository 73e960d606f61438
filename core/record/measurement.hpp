// What measuring one plan gave: raw samples first, summaries derived from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fsdp {

/// Median with its rank-based 95 % interval (order statistics of the binomial; needs six samples).
struct Summary {
  int n = 0;
  double median = 0;
  std::optional<double> low;  ///< absent below six samples
  std::optional<double> high;
};

/// Step times of one plan. Every figure is in nanoseconds.
struct Measurement {
  std::vector<std::vector<double>>
      rank_step_ns;             ///< [iteration][rank], all kept iterations in order
  std::vector<double> step_ns;  ///< per iteration: maximum over ranks
  Summary summary;              ///< of step_ns
  int warmup = 0;               ///< iterations run before and not kept
  std::string stopped;          ///< "relative error 1.8 % <= 2 %", "time cap 20 s; error 4 %"
  int verified_steps = 0;       ///< steps whose contents were checked
};

/// How much slower (positive) one plan is than another, from paired samples.
struct Comparison {
  Summary difference_ns;  ///< of the paired differences (this minus the other)
  double relative = 0;    ///< median difference over the other's median
  /// "faster", "slower", "no difference shown" (the interval holds 0, or its median lies
  /// inside the indifference zone), "too few samples".
  std::string verdict;
};

}  // namespace fsdp
