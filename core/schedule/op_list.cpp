#include "core/schedule/op_list.hpp"

#include <algorithm>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

constexpr std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

}  // namespace

void OpList::begin(Phase phase, int micro) {
  phase_ = phase;
  micro_ = micro;
}

OpId OpList::add(Work work, Stream stream, UnitId unit) {
  const OpId id{static_cast<std::int32_t>(ops_.size())};
  ops_.push_back({.work = std::move(work),
                  .phase = phase_,
                  .micro = micro_,
                  .unit = unit,
                  .stream = stream,
                  .after = std::exchange(pending_[index(stream)], {})});
  newest_[index(stream)] = id;
  return id;
}

void OpList::wait(Stream stream, OpId op) {
  expects(op.valid() && op.index() < ops_.size(), "a stream waits for an op that was issued");
  std::vector<OpId>& pending = pending_[index(stream)];
  if (ops_[op.index()].stream != stream &&
      std::find(pending.begin(), pending.end(), op) == pending.end()) {
    pending.push_back(op);
  }
}

std::optional<OpId> OpList::newest(Stream stream) const {
  const OpId op = newest_[index(stream)];
  return op.valid() ? std::optional(op) : std::nullopt;
}

}  // namespace fsdp
