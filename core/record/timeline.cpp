#include "core/record/timeline.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace fsdp {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Time covered by at least one of the intervals.
std::int64_t covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t total = 0;
  std::int64_t end = 0;
  for (const auto& [from, to] : intervals) {
    total += std::max<std::int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return total;
}

/// busbw of all-gathers and reduce-scatters: bytes (n-1)/n over the time they took, each counted
/// alone (NCCL's convention, nccl-tests PERFORMANCE.md).
double busbw(double bytes, std::int64_t time_ns, int ranks) {
  return time_ns > 0 ? bytes * (ranks - 1) / ranks / (static_cast<double>(time_ns) * 1e-9) : 0.0;
}

struct Total {
  double bytes = 0;
  std::int64_t time_ns = 0;
};

}  // namespace

StepMetrics step_metrics(const Schedule& schedule, const Timeline& timeline) {
  std::int64_t compute = 0;
  std::int64_t copies = 0;
  std::vector<Interval> collectives;
  std::vector<Interval> busy;
  Total gather;
  Total scatter;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const OpSpan& span = timeline.spans[i];
    const std::int64_t time = span.end_ns - span.start_ns;
    if (is_collective(op)) {
      collectives.emplace_back(span.start_ns, span.end_ns);
      if (std::holds_alternative<AllGather>(op.work) ||
          std::holds_alternative<ReduceScatter>(op.work)) {
        Total& total = std::holds_alternative<AllGather>(op.work) ? gather : scatter;
        total.bytes += static_cast<double>(cost_bytes(schedule, op).value);
        total.time_ns += time;
      }
    } else if (std::holds_alternative<Compute>(op.work)) {
      compute += time;
    } else if (cost_bytes(schedule, op) > Bytes{0}) {
      copies += time;
    }
    if (op.stream == Stream::compute) {
      busy.emplace_back(span.start_ns, span.end_ns);
    }
  }
  const int ranks = schedule.plan.mesh.shard;
  return {.step = timeline.step,
          .compute = {compute},
          .copies = {copies},
          .collectives = {covered(std::move(collectives))},
          .exposed_wait = {timeline.step.value - covered(std::move(busy))},
          .all_gather_busbw = busbw(gather.bytes, gather.time_ns, ranks),
          .reduce_scatter_busbw = busbw(scatter.bytes, scatter.time_ns, ranks)};
}

}  // namespace fsdp
