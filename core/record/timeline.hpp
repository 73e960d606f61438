// When each op of a schedule ran. A simulated and a measured step return this same type, so the
// model's error is a subtraction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// Nanoseconds since the step began on this rank.
struct OpSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

struct Timeline {
  std::vector<OpSpan> spans;  ///< one an op, in the schedule's order
  Nanoseconds step{0};        ///< from the start to the end of StepEnd
};

/// What a Schedule and its Timeline say together; pure.
struct StepMetrics {
  Nanoseconds step;
  Nanoseconds compute;       ///< matrix products on the compute stream
  Nanoseconds copies;        ///< copies on any stream
  Nanoseconds collectives;   ///< union of the times some collective was in flight
  Nanoseconds exposed_wait;  ///< compute stream idle: the step minus its busy time
  double all_gather_busbw =
      0;  ///< bytes per second, (n-1)/n convention, over all all-gathers; 0 when none
  double reduce_scatter_busbw = 0;
};
StepMetrics step_metrics(const Schedule& schedule, const Timeline& timeline);

}  // namespace fsdp
