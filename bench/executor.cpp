#include "bench/executor.hpp"

#include <fmt/format.h>

namespace fsdp {

std::string to_text(const DataMismatch& mismatch) {
  return fmt::format(
      "wrong data on rank {}: {} of unit {} (op #{}), element {}: expected {}, found {}",
      mismatch.rank, mismatch.operation, mismatch.unit, mismatch.op.value, mismatch.element,
      mismatch.expected, mismatch.found);
}

Timeline timeline_for(const Schedule& schedule) {
  Timeline timeline;
  timeline.spans.resize(schedule.ops.size());
  return timeline;
}

}  // namespace fsdp
