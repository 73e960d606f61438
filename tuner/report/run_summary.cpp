#include "tuner/report/run_summary.hpp"

#include <numeric>
#include <utility>

namespace fsdp {

namespace {

CandidateRecord to_record(const Trial& trial) {
  const Candidate& candidate = trial.candidate;
  CandidateRecord record;
  record.policy = candidate.label;
  record.unit_blocks = candidate.unit_blocks;
  record.forward_prefetch = prefetch_depth(candidate.policy.forward_prefetch).value_or(0);
  record.backward_prefetch = prefetch_depth(candidate.policy.backward_prefetch).value_or(0);
  record.reshard_after_forward = to_text(candidate.policy.reshard_after_forward);
  record.is_default = candidate.is_default;
  record.outcome = outcome_text(trial);
  record.units = static_cast<int>(candidate.schedule.plan.units.size());
  record.schedule_hash = candidate.hash;
  record.memory = candidate.memory;
  if (const Measured* predicted = predicted_step(trial)) {
    record.predicted_ns = predicted->step_ns;
    record.metrics = predicted->metrics;
  }
  if (const Measured* measured = measured_step(trial)) {
    record.measurement = measured->measurement;
    record.against_default = measured->against_first;
    record.metrics = measured->metrics;
    if (measured->allocation) {
      const auto& pools = measured->allocation->pools;
      record.allocated_bytes =
          std::accumulate(pools.begin(), pools.end(), Bytes{0}, [](Bytes sum, Bytes pool) {
            return sum + pool;
          }).value;
      record.peak_live_bytes = measured->allocation->peak_live.value;
    }
  }
  return record;
}

std::optional<int> place(const std::optional<std::size_t>& index) {
  return index ? std::optional<int>(static_cast<int>(*index)) : std::nullopt;
}

}  // namespace

std::string provenance(const Capabilities& capabilities) {
  return capabilities.measures ? "measured" : "simulated: not a measurement";
}

RunRecord to_record(const RunSummary& summary, const RunConfig& config) {
  RunRecord record;
  record.command = summary.command;
  record.backend = summary.capabilities.backend;
  record.provenance = provenance(summary.capabilities);
  record.config_yaml = print_config(config);
  record.model = config.model.name;
  record.scaling = config.model.scaling;
  record.parameters = parameter_total(config.model);
  record.replicate = summary.mesh.replicate;
  record.shard = summary.mesh.shard;
  record.tokens_per_rank = config.batch.tokens();
  record.seed = config.measure.seed;
  record.verdict = summary.decision.sentence;
  record.default_index = place(summary.decision.default_place);
  record.winner_index = place(summary.decision.winner);
  for (const Trial& trial : summary.trials) {
    record.candidates.push_back(to_record(trial));
  }
  record.cluster = summary.cluster;
  if (summary.decision.winner) {
    const Trial& winner = summary.trials[*summary.decision.winner];
    if (const Measured* measured = measured_step(winner)) {
      record.winner_timeline = timeline_rows(winner.candidate.schedule, measured->timeline);
    }
    if (const Measured* predicted = predicted_step(winner)) {
      record.winner_predicted_timeline =
          timeline_rows(winner.candidate.schedule, predicted->timeline);
    }
  }
  if (config.memory_limit) {
    record.memory_limit_bytes = config.memory_limit->value;
  }
  record.environment = summary.environment;
  return record;
}

}  // namespace fsdp
