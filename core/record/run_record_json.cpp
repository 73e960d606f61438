// A run record as its JSON document. Every key stands in results/README.md and in
// results/record.schema.json; a change here is a change there and a new record_version.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/record/run_record.hpp"

namespace fsdp {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity and no NaN, and a reader must not meet a made-up number in their place.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json numbers(const std::vector<double>& values) {
  Json array = Json::array();
  for (const double value : values) {
    array.push_back(number(value));
  }
  return array;
}

template <class T>
Json optional(const std::optional<T>& value) {
  if (!value) {
    return nullptr;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return number(*value);
  } else {
    return *value;
  }
}

template <class T, class ToJson>
Json optional(const std::optional<T>& value, ToJson to_json) {
  return value ? to_json(*value) : Json(nullptr);
}

template <class Values, class ToJson>
Json array_of(const Values& values, ToJson to_json) {
  Json array = Json::array();
  for (const auto& value : values) {
    array.push_back(to_json(value));
  }
  return array;
}

Json summary_json(const Summary& summary) {
  return {{"n", summary.n},
          {"median_ns", number(summary.median)},
          {"low_ns", optional(summary.low)},
          {"high_ns", optional(summary.high)}};
}

Json measurement_json(const Measurement& measurement) {
  return {{"summary", summary_json(measurement.summary)},
          {"step_ns", numbers(measurement.step_ns)},
          {"rank_step_ns", array_of(measurement.rank_step_ns, numbers)},
          {"warmup_steps", measurement.warmup},
          {"verified_steps", measurement.verified_steps},
          {"stopped", measurement.stopped}};
}

Json comparison_json(const Comparison& comparison) {
  return {{"verdict", comparison.verdict},
          {"relative", number(comparison.relative)},
          {"difference", summary_json(comparison.difference_ns)}};
}

Json memory_json(const MemoryReport& memory) {
  return {{"resident_bytes", memory.resident.value},
          {"optimizer_bytes", memory.optimizer.value},
          {"transient_live_bytes", memory.transient_live.value},
          {"arenas_bytes", memory.arenas.value},
          {"total_bytes", memory.total().value}};
}

Json metrics_json(const StepMetrics& metrics) {
  return {{"step_ns", metrics.step.value},
          {"compute_ns", metrics.compute.value},
          {"copies_ns", metrics.copies.value},
          {"collectives_ns", metrics.collectives.value},
          {"exposed_wait_ns", metrics.exposed_wait.value},
          {"all_gather_busbw_bytes_per_second", number(metrics.all_gather_busbw)},
          {"reduce_scatter_busbw_bytes_per_second", number(metrics.reduce_scatter_busbw)}};
}

Json candidate_json(const CandidateRecord& candidate) {
  return {{"policy", candidate.policy},
          {"unit_blocks", candidate.unit_blocks},
          {"forward_prefetch", candidate.forward_prefetch},
          {"backward_prefetch", candidate.backward_prefetch},
          {"reshard_after_forward", candidate.reshard_after_forward},
          {"is_default", candidate.is_default},
          {"outcome", candidate.outcome},
          {"units", candidate.units},
          {"schedule_hash", candidate.schedule_hash},
          {"memory", memory_json(candidate.memory)},
          {"predicted_step_ns", optional(candidate.predicted_ns)},
          {"measurement", optional(candidate.measurement, measurement_json)},
          {"against_default", optional(candidate.against_default, comparison_json)},
          {"metrics", optional(candidate.metrics, metrics_json)},
          {"allocated_bytes", optional(candidate.allocated_bytes)},
          {"peak_live_bytes", optional(candidate.peak_live_bytes)}};
}

Json curve_json(const CostCurve& curve) {
  return array_of(curve.points, [](const CostCurve::Point& point) -> Json {
    return {{"bytes", point.bytes.value}, {"time_ns", point.time.value}};
  });
}

Json collective_json(const CollectiveCurve& collective) {
  return {{"kind", to_text(collective.kind)},
          {"dtype", to_text(collective.dtype)},
          {"ranks", collective.ranks},
          {"points", curve_json(collective.curve)}};
}

Json copy_json(const CopyCurve& copy) {
  return {{"kind", to_text(copy.kind)}, {"points", curve_json(copy.curve)}};
}

Json gemm_json(const GemmCost& cost) {
  return {{"batch", cost.gemm.batch},
          {"m", cost.gemm.m},
          {"n", cost.gemm.n},
          {"k", cost.gemm.k},
          {"dtype", to_text(cost.dtype)},
          {"time_ns", cost.time.value}};
}

Json cluster_json(const ClusterSpec& cluster) {
  return {{"name", cluster.name},
          {"origin", cluster.origin},
          {"ranks", cluster.ranks},
          {"collectives", array_of(cluster.collectives, collective_json)},
          {"copies", array_of(cluster.copies, copy_json)},
          {"gemms", array_of(cluster.gemms, gemm_json)},
          {"gemm_rate_flops_per_second", number(cluster.gemm_rate.value)},
          {"gemm_latency_ns", cluster.gemm_latency.value},
          {"issue_cost_ns", cluster.issue_cost.value}};
}

Json row_json(const TimelineRow& row) {
  return {{"stream", row.stream}, {"operation", row.operation}, {"unit", row.unit},
          {"phase", row.phase},   {"start_ns", row.start_ns},   {"end_ns", row.end_ns}};
}

Json environment_json(const EnvironmentInfo& environment) {
  return {{"tool_version", environment.tool_version},
          {"git_state", environment.git_state},
          {"started_utc", environment.started_utc},
          {"hosts", Json(environment.hosts)},
          {"cpu", environment.cpu},
          {"logical_cpus", environment.logical_cpus},
          {"libraries", Json(environment.libraries)},
          {"variables", Json(environment.variables)}};
}

Json record_json(const RunRecord& record) {
  return {{"fsdp_tune_record", record_version},
          {"command", record.command},
          {"backend", record.backend},
          {"provenance", record.provenance},
          {"verdict", record.verdict},
          {"model",
           {{"name", record.model},
            {"scaling", record.scaling.empty() ? Json(nullptr) : Json(record.scaling)},
            {"parameters", record.parameters}}},
          {"mesh", {{"replicate", record.replicate}, {"shard", record.shard}}},
          {"tokens_per_rank", record.tokens_per_rank},
          {"memory_limit_bytes", optional(record.memory_limit_bytes)},
          {"seed", record.seed},
          {"default_index", optional(record.default_index)},
          {"winner_index", optional(record.winner_index)},
          {"candidates", array_of(record.candidates, candidate_json)},
          {"winner_timeline", array_of(record.winner_timeline, row_json)},
          {"winner_predicted_timeline", array_of(record.winner_predicted_timeline, row_json)},
          {"cluster", optional(record.cluster, cluster_json)},
          {"environment", environment_json(record.environment)},
          {"config_yaml", record.config_yaml}};
}

bool is_flat(const Json& value) {
  for (const Json& child : value) {
    if (child.is_structured() && !child.empty()) {
      return false;
    }
  }
  return true;
}

/// Text from outside (a host name, a library's message) may not be UTF-8; it must not cost the
/// whole record.
std::string one_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// One line for whatever holds only scalars, so that a timeline row or the samples of one iteration
/// are one line each and two records can be compared with diff.
void print(const Json& value, const std::string& indent, std::string& out) {
  if (!value.is_structured() || is_flat(value)) {
    out += one_line(value);
    return;
  }
  const std::string inner = indent + "  ";
  const bool object = value.is_object();
  out += object ? "{" : "[";
  const char* separator = "\n";
  for (const auto& [key, child] : value.items()) {
    out += separator + inner;
    if (object) {
      out += one_line(Json(key)) + ": ";
    }
    print(child, inner, out);
    separator = ",\n";
  }
  out += "\n" + indent + (object ? "}" : "]");
}

}  // namespace

std::string to_json(const RunRecord& record) {
  std::string out;
  print(record_json(record), "", out);
  return out + "\n";
}

}  // namespace fsdp
