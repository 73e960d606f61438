#include "tuner/evaluate/measured_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/measure/statistics.hpp"
#include "core/units/error.hpp"

namespace fsdp {

namespace {

Measured to_measured(const Candidate& candidate, SampledStep sampled) {
  Measured measured;
  measured.step_ns = sampled.measurement.summary.median;
  measured.metrics = step_metrics(candidate.schedule, sampled.timeline);
  measured.timeline = std::move(sampled.timeline);
  measured.measurement = std::move(sampled.measurement);
  measured.allocation = sampled.allocation;
  return measured;
}

}  // namespace

/// A step on every rank, or the one reason why there is none on any.
struct MeasuredEvaluator::Prepared {
  std::unique_ptr<PreparedStep> step;
  std::optional<Outcome> refusal;
};

std::vector<std::vector<std::size_t>> memory_groups(std::span<const Bytes> needs,
                                                    const std::optional<Bytes>& memory) {
  std::vector<std::vector<std::size_t>> groups;
  Bytes used{0};
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const Bytes alone = i == 0 ? needs[0] : needs[0] + needs[i];
    if (memory && alone > *memory) {
      if (i == 0) {
        return {};  // nothing can be compared with a first that does not fit
      }
      continue;
    }
    if (groups.empty() || (memory && used + needs[i] > *memory)) {
      groups.push_back(i == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{0});
      used = i == 0 ? Bytes{0} : needs[0];
    }
    groups.back().push_back(i);
    used += needs[i];
  }
  return groups;
}

MeasuredEvaluator::Prepared MeasuredEvaluator::prepare(const Candidate& candidate) {
  Prepared prepared;
  std::string refusal;
  enum class Kind { none, infeasible, failed } kind = Kind::none;
  try {
    prepared.step = executor_.prepare(candidate.schedule);
  } catch (const Unsupported& error) {
    kind = Kind::infeasible;
    refusal = error.what();
  } catch (const EnvironmentError& error) {
    kind = Kind::failed;
    refusal = fmt::format("rank {}: {}", control_.rank(), error.what());
  }
  double worst_kind = static_cast<double>(kind);
  control_.max({&worst_kind, 1}, "agreeing that a step is prepared");
  if (worst_kind == 0) {
    return prepared;
  }
  prepared.step.reset();
  const auto texts = control_.all_gather(refusal, "collecting why a step is not prepared");
  const auto first =
      std::find_if(texts.begin(), texts.end(), [](const auto& t) { return !t.empty(); });
  prepared.refusal = worst_kind == static_cast<double>(Kind::infeasible)
                         ? Outcome{Infeasible{*first}}
                         : Outcome{Failed{*first}};
  return prepared;
}

/// Preparing counts: allocating gigabytes takes seconds. All ranks continue with the same figure.
Nanoseconds MeasuredEvaluator::left_of(double budget_share, Nanoseconds start) {
  if (options_.budget.value == 0) {
    return {0};
  }
  double left = static_cast<double>(options_.budget.value) * budget_share -
                static_cast<double>((steady_now() - start).value);
  control_.min({&left, 1}, "agreeing on the time left for sampling");
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(left))};
}

void MeasuredEvaluator::measure_group(std::span<const Candidate* const> candidates,
                                      const std::vector<std::size_t>& group, double budget_share,
                                      std::vector<std::optional<Outcome>>& outcomes) {
  const Nanoseconds start = steady_now();
  std::vector<std::size_t> running;
  std::vector<Prepared> steps;
  std::vector<SampledPlan> plans;
  for (const std::size_t i : group) {
    if (options_.on_phase) {
      options_.on_phase(fmt::format("preparing {}", candidates[i]->label));
    }
    Prepared prepared = prepare(*candidates[i]);
    if (prepared.refusal) {
      outcomes[i] = std::move(prepared.refusal);
      continue;
    }
    running.push_back(i);
    plans.push_back({prepared.step.get(), &candidates[i]->schedule});
    steps.push_back(std::move(prepared));
  }
  SamplerOptions sampling = options_.sampler;
  sampling.stop.max_time.value *= static_cast<std::int64_t>(std::max<std::size_t>(1, plans.size()));
  sampling.total_limit = left_of(budget_share, start);
  if (options_.on_batch) {
    sampling.on_batch = [&](const SamplingProgress& progress) {
      options_.on_batch(progress, *candidates[running[progress.fastest]]);
    };
  }
  if (options_.on_phase) {
    options_.on_phase(fmt::format("verifying and measuring {} plans", plans.size()));
  }
  Sampler sampler(control_, sampling);
  auto sampled = sampler.measure_interleaved(plans);
  std::vector<double> first_ns;
  if (!running.empty() && running.front() == 0) {
    first_ns = sampled.front().measurement.step_ns;
  }
  for (std::size_t k = 0; k < running.size(); ++k) {
    const std::size_t i = running[k];
    Measured measured = to_measured(*candidates[i], std::move(sampled[k]));
    if (i != 0 && !first_ns.empty()) {
      measured.against_first =
          compare_paired(measured.measurement->step_ns, first_ns, options_.indifference);
    }
    if (!outcomes[i]) {  // the first is measured in every group; its first measurement stays
      outcomes[i] = std::move(measured);
    }
  }
}

std::vector<Outcome> MeasuredEvaluator::evaluate(std::span<const Candidate* const> candidates) {
  std::vector<Bytes> needs;
  for (const Candidate* candidate : candidates) {
    needs.push_back(candidate->memory.arenas);
  }
  std::vector<std::optional<Outcome>> outcomes(candidates.size());
  const auto groups = memory_groups(needs, options_.memory);
  std::size_t measured_plans = 0;
  for (const auto& group : groups) {
    measured_plans += group.size();
  }
  for (const auto& group : groups) {
    const double share = static_cast<double>(group.size()) / static_cast<double>(measured_plans);
    measure_group(candidates, group, share, outcomes);
  }
  std::vector<Outcome> result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    result.push_back(outcomes[i]
                         ? std::move(*outcomes[i])
                         : Outcome{OutOfMemory{needs[i], options_.memory.value_or(Bytes{})}});
  }
  return result;
}

}  // namespace fsdp
