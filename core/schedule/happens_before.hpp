// Which ops are ordered by streams and edges alone, whatever the timing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// One pass over the ops; a query is O(1). Edges must point backwards.
class HappensBefore {
 public:
  explicit HappensBefore(const Schedule& schedule);
  /// True when `a` ends before `b` starts in every run.
  bool operator()(OpId a, OpId b) const;

 private:
  /// For each stream, how many of its ops have ended before an op starts.
  using Clock = std::array<std::int32_t, stream_count>;
  std::vector<Clock> clocks_;
  std::vector<std::int32_t> place_;  // of an op inside its stream
  std::vector<Stream> streams_;
};

}  // namespace fsdp
