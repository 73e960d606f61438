#include "bench/measure/stopping_criterion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/statistics.hpp"

namespace fsdp {

namespace {

std::string percent(double fraction) { return fmt::format("{:.3g} %", 100 * fraction); }

/// What kept the measurement from being precise enough.
std::string unmet(const Evidence& evidence, const StopConfig& config) {
  const auto error = relative_error(evidence.summary);
  if (evidence.summary.n < config.min_samples || !error) {
    return fmt::format("{} samples, {} needed", evidence.summary.n,
                       std::max(config.min_samples, interval_samples));
  }
  return fmt::format("relative error {} > {}", percent(*error), percent(config.max_error));
}

}  // namespace

RelativeErrorCriterion::RelativeErrorCriterion(const StopConfig& config) : config_(config) {
  if (config.max_samples < 1) {
    throw UsageError("measure.stop.max_samples must be at least 1");
  }
  if (config.min_samples > config.max_samples) {
    throw UsageError(
        fmt::format("measure.stop.min_samples ({}) exceeds measure.stop.max_samples ({})",
                    config.min_samples, config.max_samples));
  }
}

std::optional<std::string> RelativeErrorCriterion::reason_to_stop(const Evidence& evidence) const {
  const auto error = relative_error(evidence.summary);
  if (evidence.summary.n >= config_.min_samples && error && *error <= config_.max_error) {
    return fmt::format("relative error {} <= {}", percent(*error), percent(config_.max_error));
  }
  if (evidence.summary.n >= config_.max_samples) {
    return fmt::format("sample cap {}; {}", config_.max_samples, unmet(evidence, config_));
  }
  if (evidence.elapsed >= config_.max_time) {
    return fmt::format("time cap {}; {}", to_text(config_.max_time), unmet(evidence, config_));
  }
  return std::nullopt;
}

}  // namespace fsdp
