#include "core/advice/gathers.hpp"

#include <algorithm>

namespace fsdp {
namespace {

constexpr int no_gather = -1;

/// The gather that a buffer's contents came from, by buffer.
class Origins {
 public:
  explicit Origins(std::size_t buffers) : gather_(buffers, no_gather) {}
  void set(BufferId buffer, int gather) { gather_[buffer.index()] = gather; }
  void copy(BufferId from, BufferId to) { gather_[to.index()] = gather_[from.index()]; }
  int of(BufferId buffer) const { return buffer.valid() ? gather_[buffer.index()] : no_gather; }

 private:
  std::vector<int> gather_;
};

}  // namespace

std::vector<Gather> gathers_of(const Schedule& schedule) {
  std::vector<Gather> out;
  Origins origins(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (const auto* gather = std::get_if<AllGather>(&op.work)) {
      origins.set(gather->to, static_cast<int>(out.size()));
      out.push_back({.op = {static_cast<std::int32_t>(i)},
                     .unit = op.unit,
                     .phase = op.phase,
                     .micro = op.micro,
                     .bytes = cost_bytes(schedule, op)});
    } else if (const auto* copy = std::get_if<CopyOut>(&op.work)) {
      origins.copy(copy->from, copy->to);
    } else if (const auto* compute = std::get_if<Compute>(&op.work)) {
      const int from = origins.of(compute->parameters);
      if (from != no_gather) {
        Gather::Use& use = out[static_cast<std::size_t>(from)].use;
        use =
            std::max(use, compute->gemms.empty() ? Gather::Use::no_product : Gather::Use::product);
      }
    }
  }
  return out;
}

}  // namespace fsdp
