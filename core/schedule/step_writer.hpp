// Writes a step down as a host thread issues it: ops with their waits, and the buffers they touch.
#pragma once

#include <optional>
#include <vector>

#include "core/schedule/op_list.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

class StepWriter {
 public:
  explicit StepWriter(const WrapPlan& plan) : plan_(plan) {}

  void begin(Phase phase, int micro) { ops_.begin(phase, micro); }
  OpId add(Work work, Stream stream, UnitId unit) {
    return ops_.add(std::move(work), stream, unit);
  }
  /// The next op on `stream` starts after `op` has ended.
  void wait(Stream stream, OpId op) { ops_.wait(stream, op); }
  std::optional<OpId> newest(Stream stream) const { return ops_.newest(stream); }
  /// `stream` waits for whatever stands on `other` so far.
  void wait_stream(Stream stream, Stream other);

  /// Nothing for a divisor of 1.
  void divide(BufferId buffer, double by, Stream stream, UnitId unit);

  /// A buffer of `unit` in the pool and dtype its kind has in this profile. For sizes that follow
  /// from the kind alone (shard, gather output, unsharded, ...) `numel` may be left out.
  Buffer buffer(BufferKind kind, UnitId unit, std::int64_t numel = -1,
                std::vector<int> parameters = {}) const;
  /// Lives for the whole step; no op.
  BufferId persistent(Buffer buffer);
  BufferId allocate(Buffer buffer);
  /// On the pool's own stream, or on the one whose progress the allocator goes by.
  void free(BufferId buffer);
  void free(BufferId buffer, Stream stream);

  const Buffer& operator[](BufferId id) const { return buffers_[id.index()]; }
  const FsdpUnit& unit(UnitId id) const { return plan_.units[id.index()]; }

  /// The end of the step on the compute stream, behind everything.
  Schedule finish();

 private:
  const WrapPlan& plan_;
  OpList ops_;
  std::vector<Buffer> buffers_;
};

}  // namespace fsdp
