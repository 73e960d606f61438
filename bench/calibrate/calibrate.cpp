#include "bench/calibrate/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "bench/measure/sampler.hpp"
#include "bench/measure/statistics.hpp"
#include "core/units/error.hpp"

namespace fsdp {

namespace {

struct Point {
  Bytes bytes;
  double time_ns = 0;
  double weight = 1;
};

std::optional<CopyKind> copy_kind(const Op& op) {
  if (std::holds_alternative<Cast>(op.work)) {
    return CopyKind::cast;
  }
  if (std::holds_alternative<CopyIn>(op.work)) {
    return CopyKind::copy_in;
  }
  if (std::holds_alternative<CopyOut>(op.work)) {
    return CopyKind::copy_out;
  }
  if (std::holds_alternative<ChunkCat>(op.work)) {
    return CopyKind::chunk_cat;
  }
  return std::nullopt;
}

struct CollectiveKey {
  CollectiveKind kind = CollectiveKind::all_gather;
  DType dtype = DType::f32;
  int ranks = 1;
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};

std::optional<CollectiveKey> collective_key(const Op& op) {
  const Group* group = group_of(op);
  if (group == nullptr) {
    return std::nullopt;
  }
  const int ranks = group->ranks;
  if (const auto* gather = std::get_if<AllGather>(&op.work)) {
    return CollectiveKey{CollectiveKind::all_gather, gather->dtype, ranks};
  }
  if (const auto* scatter = std::get_if<ReduceScatter>(&op.work)) {
    return CollectiveKey{CollectiveKind::reduce_scatter, scatter->dtype, ranks};
  }
  return CollectiveKey{CollectiveKind::all_reduce, std::get<AllReduce>(op.work).dtype, ranks};
}

/// What the sweeps saw, by the curve it belongs to.
struct Gathered {
  std::map<CollectiveKey, Observations> collectives;
  std::map<CopyKind, Observations> copies;
  std::map<GemmShape, std::vector<double>> gemms;
};

void file_spans(const Schedule& schedule, const std::vector<double>& span_ns, Gathered& gathered) {
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (const auto kind = copy_kind(op)) {
      gathered.copies[*kind][cost_bytes(schedule, op)].push_back(span_ns[i]);
    } else if (const auto key = collective_key(op)) {
      gathered.collectives[*key][cost_bytes(schedule, op)].push_back(span_ns[i]);
    } else if (const auto* compute = std::get_if<Compute>(&op.work);
               compute != nullptr && compute->gemms.size() == 1) {
      gathered.gemms[{compute->gemms.front(), compute->dtype}].push_back(span_ns[i]);
    }
  }
}

/// Runs one schedule until it has repetitions enough or its share of the budget is spent; the
/// decision is taken from times reduced over ranks.
class Sweeper {
 public:
  Sweeper(Executor& executor, ControlPlane& control, const CalibrationRequest& request, int sweeps)
      : executor_(executor),
        control_(control),
        request_(request),
        total_(sweeps),
        share_{request.budget.value / std::max(1, sweeps)} {}

  void run(const std::string& what, const Schedule& schedule, Gathered& gathered) {
    if (request_.on_sweep) {
      request_.on_sweep(what, done_, total_);
    }
    const Nanoseconds start = steady_now();
    const std::unique_ptr<PreparedStep> step = executor_.prepare(schedule);
    if (executor_.capabilities().measures) {
      control_.barrier("before verifying a sweep");
      agree_on_contents(control_, step->run_verified());
    }
    Timeline timeline = timeline_for(schedule);
    control_.barrier("before warming up a sweep");
    step->run(timeline);
    for (int i = 0; i < request_.max_repetitions; ++i) {
      control_.barrier("before a sweep's step");
      step->run(timeline);
      const std::vector<double> figures = reduced(timeline, start);
      file_spans(schedule, figures, gathered);
      if (i + 1 >= request_.min_repetitions && figures.back() > static_cast<double>(share_.value)) {
        break;
      }
    }
    ++done_;
  }

 private:
  /// Durations of all ops and, last, the elapsed time; each the maximum over ranks.
  std::vector<double> reduced(const Timeline& timeline, Nanoseconds start) {
    std::vector<double> figures;
    figures.reserve(timeline.spans.size() + 1);
    for (const OpSpan& span : timeline.spans) {
      figures.push_back(static_cast<double>(span.end_ns - span.start_ns));
    }
    figures.push_back(static_cast<double>((steady_now() - start).value));
    control_.max(figures, "exchanging a sweep's times");
    return figures;
  }

  Executor& executor_;
  ControlPlane& control_;
  const CalibrationRequest& request_;
  int total_;
  int done_ = 0;
  Nanoseconds share_;
};

Nanoseconds at_least_one(double time_ns) {
  return {std::max<std::int64_t>(1, std::llround(time_ns))};
}

ClusterSpec to_cluster(const Gathered& gathered, const DeviceMesh& mesh) {
  ClusterSpec cluster;
  cluster.name = "this machine";
  cluster.origin = "calibrated on this machine";
  cluster.ranks = mesh.world();
  for (const auto& [key, observations] : gathered.collectives) {
    cluster.collectives.push_back({key.kind, key.dtype, key.ranks, cost_curve(observations)});
  }
  for (const auto& [kind, observations] : gathered.copies) {
    cluster.copies.push_back({kind, cost_curve(observations)});
  }
  double operations = 0;
  double seconds = 0;
  for (const auto& [shape, times] : gathered.gemms) {
    const Nanoseconds time = at_least_one(median(times));
    cluster.gemms.push_back({shape.gemm, shape.dtype, time});
    operations += flops(shape.gemm).value;
    seconds += static_cast<double>(time.value) * 1e-9;
  }
  if (seconds > 0) {
    cluster.gemm_rate = {operations / seconds};
  }
  return cluster;
}

}  // namespace

CostCurve cost_curve(const Observations& observations) {
  std::vector<Point> pools;  // runs of sizes that share one time
  std::vector<std::size_t> counts;
  for (const auto& [bytes, times] : observations) {
    pools.push_back({bytes, median(times), 1});
    counts.push_back(1);
    while (pools.size() > 1 && pools[pools.size() - 2].time_ns > pools.back().time_ns) {
      Point& into = pools[pools.size() - 2];
      const Point& last = pools.back();
      into.time_ns =
          (into.time_ns * into.weight + last.time_ns * last.weight) / (into.weight + last.weight);
      into.weight += last.weight;
      counts[counts.size() - 2] += counts.back();
      pools.pop_back();
      counts.pop_back();
    }
  }
  CostCurve curve;
  auto observed = observations.begin();
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    for (std::size_t i = 0; i < counts[pool]; ++i, ++observed) {
      curve.points.push_back({observed->first, at_least_one(pools[pool].time_ns)});
    }
  }
  return curve;
}

ClusterSpec calibrate(Executor& executor, ControlPlane& control,
                      const CalibrationRequest& request) {
  const CalibrationNeeds& needs = request.needs;
  std::vector<std::pair<SizeRange, std::int64_t>> sizes;
  for (const SizeRange& range : needs.sizes) {
    for (const std::int64_t numel : sweep_sizes(range, needs.mesh.shard, request.size_limit)) {
      sizes.emplace_back(range, numel);
    }
  }
  std::map<DType, SizeRange> gemm_dtypes;
  for (const GemmShape& shape : needs.gemms) {
    gemm_dtypes.try_emplace(shape.dtype, needs.sizes.front());
  }
  Gathered gathered;
  Sweeper sweeper(executor, control, request, static_cast<int>(sizes.size() + gemm_dtypes.size()));
  for (const auto& [range, numel] : sizes) {
    const std::string what =
        fmt::format("collectives and copies of {}", to_text(bytes_of(numel, range.param_dtype)));
    sweeper.run(what, size_schedule(needs, range, numel), gathered);
  }
  for (const auto& [dtype, range] : gemm_dtypes) {
    const std::string what =
        fmt::format("{} matrix products ({})", needs.gemms.size(), to_text(dtype));
    sweeper.run(what, gemm_schedule(needs, range, dtype), gathered);
  }
  return to_cluster(gathered, needs.mesh);
}

}  // namespace fsdp
