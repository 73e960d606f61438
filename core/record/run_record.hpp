// One run, whole: enough to repeat it and to judge it. results/README.md documents the JSON; its
// version changes when a key does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/cluster_spec.hpp"
#include "core/record/measurement.hpp"
#include "core/record/timeline.hpp"
#include "core/schedule/memory.hpp"

namespace fsdp {

inline constexpr int record_version = 1;

/// Where the run happened: an allow-list, never the whole environment.
struct EnvironmentInfo {
  std::string tool_version;
  std::string git_state;           ///< "abc1234", "abc1234-dirty", "unknown"
  std::string started_utc;         ///< ISO 8601
  std::vector<std::string> hosts;  ///< by rank
  std::string cpu;                 ///< model name
  int logical_cpus = 0;
  std::map<std::string, std::string> libraries;  ///< as loaded: "MPI", "compute"
  std::map<std::string, std::string> variables;  ///< by allow-list
};

/// A timeline ready to be drawn: ops that take time, names resolved.
struct TimelineRow {
  std::string stream;
  std::string operation;
  std::string unit;
  std::string phase;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};
std::vector<TimelineRow> timeline_rows(const Schedule& schedule, const Timeline& timeline);

struct CandidateRecord {
  std::string policy;   ///< to_text of the policy
  int unit_blocks = 0;  ///< blocks a unit; 0 when the policy is not uniform
  int forward_prefetch = 0;
  int backward_prefetch = 1;
  std::string reshard_after_forward;
  bool is_default = false;
  std::string outcome;  ///< "measured", "pruned by simulation", "does not fit: ...", "failed: ..."
  int units = 0;
  std::string schedule_hash;
  MemoryReport memory;
  std::optional<double> predicted_ns;  ///< simulated step time
  std::optional<Measurement> measurement;
  std::optional<Comparison> against_default;
  std::optional<StepMetrics> metrics;           ///< of the timeline below or of the simulated one
  std::optional<std::int64_t> allocated_bytes;  ///< by the backend, counted where it allocates
  std::optional<std::int64_t> peak_live_bytes;  ///< transient, counted while running
};

struct RunRecord {
  std::string command;      ///< "tune", "replay"
  std::string backend;      ///< "mpi", "sim"
  std::string provenance;   ///< "measured", or "simulated: not a measurement"
  std::string config_yaml;  ///< print_config
  std::string model;
  std::string scaling;  ///< empty when the model is not scaled
  std::int64_t parameters = 0;
  int replicate = 1;
  int shard = 1;
  std::int64_t tokens_per_rank = 0;
  std::uint64_t seed = 1;
  std::string verdict;  ///< the sentence a person reads first
  std::optional<int> default_index;
  std::optional<int> winner_index;
  std::vector<CandidateRecord> candidates;
  std::optional<ClusterSpec> cluster;        ///< calibrated or given
  std::vector<TimelineRow> winner_timeline;  ///< measured on rank 0 when the backend measures
  std::vector<TimelineRow> winner_predicted_timeline;
  std::optional<std::int64_t> memory_limit_bytes;
  EnvironmentInfo environment;
};

/// The document of results/README.md; keys carry their units.
std::string to_json(const RunRecord& record);
/// Writes `<folder>/<name>.json` through a temporary file and rename; never overwrites (a number is
/// added). Returns the path. Throws EnvironmentError with path and reason.
std::string write_record(const RunRecord& record, const std::string& folder,
                         const std::string& name);

}  // namespace fsdp
