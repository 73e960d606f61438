#include "tests/property/ordering.hpp"

#include <array>

#include "core/schedule/access.hpp"

namespace fsdp::test {
namespace {

struct Touch {
  OpId op;
  bool changes;
  bool frees = false;
};

OpId id_of(std::size_t op) { return {static_cast<std::int32_t>(op)}; }

}  // namespace

Closure::Closure(const Schedule& schedule)
    : words_((schedule.ops.size() + 63) / 64), bits_(words_ * schedule.ops.size()) {
  std::array<OpId, stream_count> newest{};
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    std::vector<OpId> before = op.after;
    before.push_back(newest[static_cast<std::size_t>(op.stream)]);
    // Whatever is issued behind a wait of the host starts after it.
    before.push_back(newest[static_cast<std::size_t>(Stream::host)]);
    if (const auto* wait = std::get_if<HostWait>(&op.work)) {
      before.push_back(wait->until);
    }
    for (const OpId earlier : before) {
      if (!earlier.valid()) {
        continue;
      }
      for (std::size_t word = 0; word < words_; ++word) {
        bits_[i * words_ + word] |= bits_[earlier.index() * words_ + word];
      }
      bits_[i * words_ + earlier.index() / 64] |= std::uint64_t{1} << (earlier.index() % 64);
    }
    newest[static_cast<std::size_t>(op.stream)] = id_of(i);
  }
}

bool Closure::operator()(OpId a, OpId b) const {
  return (bits_[b.index() * words_ + a.index() / 64] >> (a.index() % 64) & 1U) != 0;
}

std::vector<Needed> needed_orders(const Schedule& schedule) {
  std::vector<std::vector<Touch>> touches(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const Access access = access_of(op);
    for (const BufferId buffer : access.reads) {
      touches[buffer.index()].push_back({id_of(i), false});
    }
    for (const BufferId buffer : access.writes) {
      touches[buffer.index()].push_back({id_of(i), true});
    }
    if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
      touches[allocate->buffer.index()].push_back({id_of(i), true});
    } else if (const auto* release = std::get_if<Free>(&op.work)) {
      touches[release->buffer.index()].push_back({id_of(i), true, true});
    }
  }
  std::vector<Needed> out;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const Stream own = stream_of(schedule.buffers[i].pool);
    const std::vector<Touch>& buffer = touches[i];
    for (std::size_t a = 0; a < buffer.size(); ++a) {
      for (std::size_t b = a + 1; b < buffer.size(); ++b) {
        const bool follows = buffer[b].frees && schedule[buffer[a].op].stream == own;
        if (buffer[a].op != buffer[b].op && !follows && (buffer[a].changes || buffer[b].changes)) {
          out.push_back({buffer[a].op, buffer[b].op});
        }
      }
    }
  }
  for (std::size_t i = 0; i + 1 < schedule.ops.size(); ++i) {
    out.push_back({id_of(i), id_of(schedule.ops.size() - 1)});
  }
  return out;
}

}  // namespace fsdp::test
