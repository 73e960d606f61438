#include <fmt/format.h>

#include <algorithm>

#include "core/advice/detectors.hpp"

namespace fsdp::detect {
namespace {

/// The moment in forward at which the most transient bytes are alive, and how many of them are a
/// gather's output that was copied out already.
struct Peak {
  Bytes live;
  Bytes outlived;
  UnitId unit;      ///< whose parameters are being allocated
  UnitId previous;  ///< whose output is still there
};

class Fold {
 public:
  explicit Fold(const Schedule& schedule) : schedule_(schedule) {}

  Peak forward_peak() {
    for (const Op& op : schedule_.ops) {
      if (const auto* copy = std::get_if<CopyOut>(&op.work)) {
        copied_.push_back(copy->from);
      } else if (const auto* release = std::get_if<Free>(&op.work)) {
        live_ -= schedule_[release->buffer].bytes();
        std::erase(copied_, release->buffer);
      } else if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
        live_ += schedule_[allocate->buffer].bytes();
        look(op, schedule_[allocate->buffer]);
      }
    }
    return peak_;
  }

 private:
  void look(const Op& op, const Buffer& buffer) {
    if (op.phase != Phase::forward || live_ <= peak_.live) {
      return;
    }
    peak_ = {.live = live_, .outlived = {}, .unit = op.unit, .previous = {}};
    if (buffer.kind != BufferKind::unsharded) {
      return;
    }
    for (const BufferId output : copied_) {
      peak_.outlived += schedule_[output].bytes();
      peak_.previous = schedule_[output].unit;
    }
  }

  const Schedule& schedule_;
  Bytes live_;
  std::vector<BufferId> copied_;  // gather outputs that are no longer needed but alive
  Peak peak_;
};

}  // namespace

/// With an explicit list the third buffer is the price of a prefetch; without one it buys nothing.
void three_buffers(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  const auto* depth = std::get_if<int>(&schedule.plan.policy.forward_prefetch);
  if (schedule.plan.policy.profile != Profile::fsdp2 || depth == nullptr || *depth > 0) {
    return;
  }
  const Peak peak = Fold(schedule).forward_peak();
  if (peak.outlived.value == 0) {
    return;
  }
  out.push_back(
      {.id = "three_buffers",
       .unit = schedule.plan[peak.unit].name,
       .parameter = {},
       .what = fmt::format(
           "forward's peak is the copy-out of {}, while the gather output of {} is "
           "still alive: {} + 2 x {}",
           schedule.plan[peak.unit].name, schedule.plan[peak.previous].name, to_text(peak.outlived),
           to_text(bytes_of(schedule.plan[peak.unit].gather_shard_numel * schedule.plan.mesh.shard,
                            schedule.plan[peak.unit].gather_dtype))),
       .why = "PyTorch drops a gather's output only after the next copy-out has allocated, so the "
              "memory of a prefetch is paid without its overlap; with one explicit step the peak "
              "of equal units is the same and the next gather is issued before the products",
       .bytes = peak.outlived,
       .cost = Finding::Cost::held,
       .time = {},
       .remedy = "prefetch: {forward: 1}"});
}

}  // namespace fsdp::detect
