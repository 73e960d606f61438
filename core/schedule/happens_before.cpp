#include "core/schedule/happens_before.hpp"

#include <algorithm>

#include "core/units/error.hpp"

namespace fsdp {

HappensBefore::HappensBefore(const Schedule& schedule)
    : clocks_(schedule.ops.size()), place_(schedule.ops.size()), streams_(schedule.ops.size()) {
  std::array<OpId, stream_count> newest{};
  const auto learn = [this](Clock& clock, OpId earlier) {
    const Clock& other = clocks_[earlier.index()];
    for (std::size_t s = 0; s < clock.size(); ++s) {
      clock[s] = std::max(clock[s], other[s]);
    }
    auto& own = clock[static_cast<std::size_t>(streams_[earlier.index()])];
    own = std::max(own, place_[earlier.index()] + 1);
  };
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    streams_[i] = op.stream;
    OpId& last = newest[static_cast<std::size_t>(op.stream)];
    if (last.valid()) {
      place_[i] = place_[last.index()] + 1;
      learn(clocks_[i], last);
    }
    for (const OpId edge : op.after) {
      expects(edge.valid() && edge.index() < i, "an edge points to an earlier op");
      learn(clocks_[i], edge);
    }
    if (const auto* wait = std::get_if<HostWait>(&op.work); wait && wait->until.valid()) {
      expects(wait->until.index() < i, "the host waits for an earlier op");
      learn(clocks_[i], wait->until);
    }
    if (const OpId host = newest[static_cast<std::size_t>(Stream::host)];
        host.valid() && op.stream != Stream::host) {
      learn(clocks_[i], host);  // it was issued after the host had stopped waiting
    }
    last = {static_cast<std::int32_t>(i)};
  }
}

bool HappensBefore::operator()(OpId a, OpId b) const {
  return clocks_[b.index()][static_cast<std::size_t>(streams_[a.index()])] > place_[a.index()];
}

}  // namespace fsdp
