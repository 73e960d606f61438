// Trials with chosen figures, for tests of what the tuner makes of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/measure/statistics.hpp"
#include "tuner/search/trial.hpp"

namespace fsdp::test {

struct TrialFigures {
  std::string label;
  std::int64_t arenas = 0;  ///< bytes; optimizer state is 0
  double predicted_ns = 0;
  int unit_blocks = 0;
  bool is_default = false;
};

inline Trial trial(const TrialFigures& figures) {
  Trial result;
  result.candidate.label = figures.label;
  result.candidate.unit_blocks = figures.unit_blocks;
  if (figures.unit_blocks > 0) {
    result.candidate.policy.wrap = WrapEvery{figures.unit_blocks};
  }
  result.candidate.is_default = figures.is_default;
  result.candidate.memory.arenas = {figures.arenas};
  if (figures.predicted_ns > 0) {
    Measured predicted;
    predicted.step_ns = figures.predicted_ns;
    result.predicted = std::move(predicted);
  }
  return result;
}

/// Adds a measurement whose samples are `step_ns`, compared with `baseline_ns` where it is given.
inline void measure(Trial& trial, const std::vector<double>& step_ns,
                    const std::vector<double>& baseline_ns = {}) {
  Measured measured;
  measured.measurement.emplace();
  measured.measurement->step_ns = step_ns;
  measured.measurement->summary = summarise(step_ns);
  measured.measurement->verified_steps = 1;
  measured.measurement->stopped = "sample cap";
  measured.step_ns = measured.measurement->summary.median;
  if (!baseline_ns.empty()) {
    measured.against_first = compare_paired(step_ns, baseline_ns, 0.01);
  }
  trial.measured = std::move(measured);
}

/// Eight samples around `median`, shaped alike for every median.
inline std::vector<double> samples(double median) {
  return {median, median + 1, median - 1, median, median + 2, median - 2, median, median};
}

}  // namespace fsdp::test
