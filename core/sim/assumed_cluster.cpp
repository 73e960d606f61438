#include "core/sim/assumed_cluster.hpp"

#include <cmath>
#include <set>
#include <utility>

namespace fsdp {
namespace {

constexpr double busbw = 50e9;      // bytes a second
constexpr double copy_rate = 2e12;  // bytes a second
constexpr double collective_ns = 20e3;
constexpr double copy_ns = 5e3;
constexpr std::int64_t far = std::int64_t{1} << 40;

/// Latency plus bytes at a rate. Of no bytes the latency is left.
CostCurve line(double latency_ns, double bytes_per_second) {
  const double slope_ns = static_cast<double>(far) / bytes_per_second * 1e9;
  return {.points = {{.bytes = {0}, .time = {std::llround(latency_ns)}},
                     {.bytes = {far}, .time = {std::llround(latency_ns + slope_ns)}}}};
}

CollectiveKind kind_of(const Op& op) {
  if (std::holds_alternative<AllGather>(op.work)) {
    return CollectiveKind::all_gather;
  }
  return std::holds_alternative<ReduceScatter>(op.work) ? CollectiveKind::reduce_scatter
                                                        : CollectiveKind::all_reduce;
}

CollectiveCurve curve_of(CollectiveKind kind, int ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double moved = kind == CollectiveKind::all_reduce ? 2 * share : share;
  return {.kind = kind,
          .dtype = DType::bf16,
          .ranks = ranks,
          .curve = line(collective_ns, ranks == 1 ? copy_rate : busbw / moved)};
}

}  // namespace

ClusterSpec assumed_cluster(const Schedule& schedule) {
  ClusterSpec out;
  out.name = "assumed";
  out.origin = "assumed: 20 us + 50 GB/s busbw a collective, 5 us + 2 TB/s a copy, 500 TFLOP/s";
  out.ranks = schedule.plan.mesh.world();
  std::set<std::pair<CollectiveKind, int>> groups;
  for (const Op& op : schedule.ops) {
    if (is_collective(op) && groups.emplace(kind_of(op), group_of(op)->ranks).second) {
      out.collectives.push_back(curve_of(kind_of(op), group_of(op)->ranks));
    }
  }
  for (const CopyKind kind :
       {CopyKind::cast, CopyKind::copy_in, CopyKind::copy_out, CopyKind::chunk_cat}) {
    out.copies.push_back({.kind = kind, .curve = line(copy_ns, copy_rate)});
  }
  out.gemm_rate = {500e12};
  return out;
}

}  // namespace fsdp
