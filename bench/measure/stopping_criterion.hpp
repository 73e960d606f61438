// When a measurement ends: precise enough, or out of time or samples. The criterion sees only
// figures that were reduced over ranks, so that every rank decides the same.
#pragma once

#include <optional>
#include <string>

#include "core/config/run_config.hpp"
#include "core/record/measurement.hpp"

namespace fsdp {

/// What is known after a batch.
struct Evidence {
  Summary summary;         ///< of the step times, each the maximum over ranks
  Nanoseconds elapsed{0};  ///< since the measurement began, maximum over ranks
};

class StoppingCriterion {
 public:
  virtual ~StoppingCriterion() = default;
  /// Why to stop now, or nothing. The text names the condition that was not met when a cap ends
  /// the measurement: "time cap 20 s; relative error 4.1 % > 2 %".
  virtual std::optional<std::string> reason_to_stop(const Evidence& evidence) const = 0;
};

/// Half-width of the 95 % interval over the median, within a time cap and a sample cap.
class RelativeErrorCriterion final : public StoppingCriterion {
 public:
  /// Throws UsageError when no number of samples could satisfy `config`.
  explicit RelativeErrorCriterion(const StopConfig& config);
  std::optional<std::string> reason_to_stop(const Evidence& evidence) const override;

 private:
  StopConfig config_;
};

}  // namespace fsdp
