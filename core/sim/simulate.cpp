#include "core/sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

class CostModel {
 public:
  CostModel(const Schedule& schedule, const ClusterSpec& cluster)
      : schedule_(schedule), cluster_(cluster) {
    for (const GemmCost& cost : cluster.gemms) {
      gemms_.emplace(std::tuple(cost.gemm, cost.dtype), cost.time);
    }
  }

  Nanoseconds cost(const Op& op) const {
    return std::visit([&](const auto& work) { return of(work, op); }, op.work);
  }

 private:
  Nanoseconds of(const Allocate&, const Op&) const { return {0}; }
  Nanoseconds of(const Free&, const Op&) const { return {0}; }
  Nanoseconds of(const HostWait&, const Op&) const { return {0}; }
  Nanoseconds of(const StepEnd&, const Op&) const { return {0}; }
  Nanoseconds of(const ReshardToSubmesh&, const Op& op) const {
    return copy(CopyKind::copy_in, op);
  }
  Nanoseconds of(const Concat&, const Op& op) const { return copy(CopyKind::chunk_cat, op); }
  Nanoseconds of(const Divide&, const Op& op) const { return copy(CopyKind::cast, op); }
  Nanoseconds of(const Accumulate&, const Op& op) const { return copy(CopyKind::cast, op); }
  Nanoseconds of(const HostToDevice&, const Op& op) const { return copy(CopyKind::cast, op); }
  Nanoseconds of(const DeviceToHost&, const Op& op) const { return copy(CopyKind::cast, op); }
  Nanoseconds of(const Cast&, const Op& op) const { return copy(CopyKind::cast, op); }
  Nanoseconds of(const CopyIn&, const Op& op) const { return copy(CopyKind::copy_in, op); }
  Nanoseconds of(const CopyOut&, const Op& op) const { return copy(CopyKind::copy_out, op); }
  Nanoseconds of(const ChunkCat&, const Op& op) const { return copy(CopyKind::chunk_cat, op); }
  Nanoseconds of(const AllGather& w, const Op& op) const {
    return collective(CollectiveKind::all_gather, w.dtype, op);
  }
  Nanoseconds of(const ReduceScatter& w, const Op& op) const {
    return collective(CollectiveKind::reduce_scatter, w.dtype, op);
  }
  Nanoseconds of(const AllReduce& w, const Op& op) const {
    return collective(CollectiveKind::all_reduce, w.dtype, op);
  }
  Nanoseconds of(const Compute& w, const Op&) const {
    Nanoseconds total{0};
    for (const Gemm& gemm : w.gemms) {
      const auto it = gemms_.find({gemm, w.dtype});
      total += it != gemms_.end() ? it->second : by_rate(gemm);
    }
    return total;
  }

  Nanoseconds by_rate(const Gemm& gemm) const {
    const double seconds = flops(gemm).value / cluster_.gemm_rate.value;
    return Nanoseconds{std::llround(seconds * 1e9)} + cluster_.gemm_latency;
  }

  Nanoseconds copy(CopyKind kind, const Op& op) const {
    const auto it = std::find_if(cluster_.copies.begin(), cluster_.copies.end(),
                                 [&](const CopyCurve& curve) { return curve.kind == kind; });
    if (it == cluster_.copies.end()) {
      throw UsageError(fmt::format("cluster {}: no cost curve for {}; add one under copies",
                                   cluster_.name, to_text(kind)));
    }
    return it->curve.at(cost_bytes(schedule_, op));
  }

  /// The curve of this dtype, else of another: what moves is bytes.
  Nanoseconds collective(CollectiveKind kind, DType dtype, const Op& op) const {
    const int ranks = group_of(op)->ranks;
    const CollectiveCurve* found = nullptr;
    for (const CollectiveCurve& curve : cluster_.collectives) {
      if (curve.kind == kind && curve.ranks == ranks &&
          (found == nullptr || curve.dtype == dtype)) {
        found = &curve;
      }
    }
    if (found == nullptr) {
      throw UsageError(
          fmt::format("cluster {}: no cost curve for {} over {} ranks; the mesh must match the "
                      "cluster's ranks or a curve be "
                      "added under collectives",
                      cluster_.name, to_text(kind), ranks));
    }
    return found->curve.at(cost_bytes(schedule_, op));
  }

  const Schedule& schedule_;
  const ClusterSpec& cluster_;
  std::map<std::tuple<Gemm, DType>, Nanoseconds> gemms_;
};

}  // namespace

std::vector<Nanoseconds> op_costs(const Schedule& schedule, const ClusterSpec& cluster) {
  const CostModel model(schedule, cluster);
  std::vector<Nanoseconds> out;
  out.reserve(schedule.ops.size());
  for (const Op& op : schedule.ops) {
    out.push_back(model.cost(op));
  }
  return out;
}

Timeline simulate(const Schedule& schedule, const std::vector<Nanoseconds>& costs,
                  Nanoseconds issue_cost) {
  expects(costs.size() == schedule.ops.size(), "one cost an op");
  Timeline out{.spans = std::vector<OpSpan>(schedule.ops.size()), .step = {}};
  std::array<std::int64_t, stream_count> stream_free{};
  std::map<Group, std::int64_t> communicator_free;
  std::int64_t issued = 0;
  // Ops stand in issue order and edges point backwards, so one pass meets every op after all it
  // waits for.
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    issued += issue_cost.value;
    std::int64_t start = std::max(issued, stream_free[static_cast<std::size_t>(op.stream)]);
    for (const OpId edge : op.after) {
      start = std::max(start, out.spans[edge.index()].end_ns);
    }
    const Group* group = group_of(op);
    if (group != nullptr) {
      start = std::max(start, communicator_free[*group]);
    }
    std::int64_t end = start + costs[i].value;
    if (const auto* wait = std::get_if<HostWait>(&op.work)) {
      end = wait->until.valid() ? std::max(end, out.spans[wait->until.index()].end_ns) : end;
      issued = end;
    }
    out.spans[i] = {.start_ns = start, .end_ns = end};
    stream_free[static_cast<std::size_t>(op.stream)] = end;
    if (group != nullptr) {
      communicator_free[*group] = end;
    }
  }
  out.step = {schedule.ops.empty() ? 0 : out.spans.back().end_ns};
  return out;
}

Timeline simulate(const Schedule& schedule, const ClusterSpec& cluster) {
  return simulate(schedule, op_costs(schedule, cluster), cluster.issue_cost);
}

}  // namespace fsdp
