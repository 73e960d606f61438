// Appends ops the way a host thread issues them to streams: waits attach to the next op of the
// waiting stream, also those that an earlier one implies, because PyTorch issues them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

class OpList {
 public:
  /// Phase and micro-batch of what follows.
  void begin(Phase phase, int micro);
  OpId add(Work work, Stream stream, UnitId unit);
  /// The next op on `stream` starts after `op` has ended.
  void wait(Stream stream, OpId op);
  /// The newest op of a stream, if any.
  std::optional<OpId> newest(Stream stream) const;
  std::vector<Op> take() { return std::move(ops_); }

 private:
  std::vector<Op> ops_;
  Phase phase_ = Phase::forward;
  int micro_ = 0;
  std::array<std::vector<OpId>, stream_count> pending_;
  std::array<OpId, stream_count> newest_;
};

}  // namespace fsdp
