// Measures what a set of schedules is made of (collectives and copies by size, matrix products by
// shape) and returns it as the cost model of this machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/calibrate/sweep.hpp"
#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "core/model/cluster_spec.hpp"

namespace fsdp {

struct CalibrationRequest {
  CalibrationNeeds needs;
  Nanoseconds budget{12'000'000'000};  ///< shared by all sweeps; each runs `min_repetitions` anyway
  int min_repetitions = 3;
  int max_repetitions = 15;
  int size_limit = 7;  ///< sizes a sweep
  /// Called before each sweep with its place among `total`.
  std::function<void(const std::string& what, int done, int total)> on_sweep;
};

/// Collective. Every figure is the median over repetitions of the maximum over ranks. Throws
/// WrongData when the contents of a sweep are not what they should be.
ClusterSpec calibrate(Executor& executor, ControlPlane& control, const CalibrationRequest& request);

/// Times of one operation by bytes, as they were observed.
using Observations = std::map<Bytes, std::vector<double>>;

/// Median a size, then the closest non-decreasing curve (pool adjacent violators, least squares):
/// noise must not make a larger message look cheaper.
CostCurve cost_curve(const Observations& observations);

}  // namespace fsdp
