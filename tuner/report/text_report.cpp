#include "tuner/report/text_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/measure/statistics.hpp"
#include "tuner/report/text_table.hpp"

namespace fsdp {

namespace {

std::string milliseconds(double time_ns) {
  const double time_ms = time_ns * 1e-6;
  return fmt::format("{:.{}f}", time_ms, time_ms >= 100 ? 1 : time_ms >= 1 ? 2 : 3);
}

std::string milliseconds(Nanoseconds time) { return milliseconds(static_cast<double>(time.value)); }

std::string median_text(const Summary& summary) {
  if (!summary.low || !summary.high) {
    return fmt::format("{} (n={})", milliseconds(summary.median), summary.n);
  }
  return fmt::format("{} [{}, {}]", milliseconds(summary.median), milliseconds(*summary.low),
                     milliseconds(*summary.high));
}

std::string percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

/// "-6.1 [-7.3, -4.9]", in percent of the default.
std::string difference_text(const Measured& step, double default_ns) {
  if (!step.against_first) {
    return "";
  }
  const auto interval = relative_interval(*step.against_first, default_ns);
  return interval ? fmt::format("{} [{}, {}]", percent(step.against_first->relative),
                                percent(interval->low), percent(interval->high))
                  : percent(step.against_first->relative);
}

std::string prefetch_text(const FsdpPolicy& policy) {
  const auto depth = [](const Prefetch& prefetch) {
    const auto value = prefetch_depth(prefetch);
    return value ? std::to_string(*value) : std::string("lists");
  };
  return depth(policy.forward_prefetch) + "/" + depth(policy.backward_prefetch);
}

std::string hosts_text(const EnvironmentInfo& environment) {
  std::set<std::string> hosts(environment.hosts.begin(), environment.hosts.end());
  if (hosts.size() > 4) {
    return fmt::format("{} hosts", hosts.size());
  }
  return fmt::format("{}", fmt::join(hosts, ", "));
}

std::string provenance_line(const RunSummary& summary) {
  const Capabilities& capabilities = summary.capabilities;
  if (!capabilities.measures) {
    return fmt::format("simulated: not a measurement ({})", capabilities.compute);
  }
  return fmt::format("measured on {} rank{}, {} ({}), backend {} ({})", summary.mesh.world(),
                     summary.mesh.world() == 1 ? "" : "s", hosts_text(summary.environment),
                     summary.environment.cpu, capabilities.backend, capabilities.compute);
}

std::string verdict_cell(const Trial& trial, const Measured* measured) {
  if (trial.candidate.is_default) {
    return "default";
  }
  return measured != nullptr && measured->against_first ? measured->against_first->verdict
                                                        : outcome_text(trial);
}

std::string marker(std::size_t index, const Decision& decision) {
  return decision.winner == index ? "*" : "";
}

double default_time(const RunSummary& summary) {
  const auto& place = summary.decision.default_place;
  const Measured* measured = place ? measured_step(summary.trials[*place]) : nullptr;
  return measured != nullptr ? measured->step_ns : 0;
}

/// Places of the candidates that went on, fastest first.
std::vector<std::size_t> shown(const RunSummary& summary) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < summary.trials.size(); ++i) {
    if (summary.trials[i].dropped.empty()) {
      places.push_back(i);
    }
  }
  const auto time = [&](std::size_t i) {
    const Trial& trial = summary.trials[i];
    const Measured* step = measured_step(trial);
    if (step == nullptr && !trial.measured) {
      step = predicted_step(trial);
    }
    return step != nullptr ? step->step_ns : INFINITY;
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
  return places;
}

std::string measured_table(const RunSummary& summary) {
  using Align = TextTable::Align;
  TextTable table({{"", Align::left},
                   {"wrap", Align::left},
                   {"units", Align::right},
                   {"prefetch", Align::left},
                   {"after forward", Align::left},
                   {"predicted ms", Align::right},
                   {"measured ms [95 %]", Align::left},
                   {"vs default % [95 %]", Align::left},
                   {"verdict", Align::left},
                   {"memory", Align::right}});
  for (const std::size_t i : shown(summary)) {
    const Trial& trial = summary.trials[i];
    const Measured* predicted = predicted_step(trial);
    const Measured* measured = measured_step(trial);
    table.add({marker(i, summary.decision), to_text(trial.candidate.policy.wrap),
               std::to_string(trial.candidate.schedule.plan.units.size()),
               prefetch_text(trial.candidate.policy),
               to_text(trial.candidate.policy.reshard_after_forward),
               predicted != nullptr ? milliseconds(predicted->step_ns) : "-",
               measured != nullptr ? median_text(measured->measurement->summary) : "-",
               measured != nullptr ? difference_text(*measured, default_time(summary)) : "",
               verdict_cell(trial, measured), to_text(trial.candidate.memory.total())});
  }
  return table.text();
}

/// Simulated candidates that the table shows; the default stands in it anyway.
constexpr int simulated_rows = 12;

std::string simulated_table(const RunSummary& summary) {
  using Align = TextTable::Align;
  TextTable table({{"", Align::left},
                   {"wrap", Align::left},
                   {"units", Align::right},
                   {"prefetch", Align::left},
                   {"after forward", Align::left},
                   {"predicted ms", Align::right},
                   {"exposed ms", Align::right},
                   {"", Align::left},
                   {"memory", Align::right}});
  int rows = 0;
  int left_out = 0;
  for (const std::size_t i : shown(summary)) {
    const Trial& trial = summary.trials[i];
    if (++rows > simulated_rows && !trial.candidate.is_default) {
      ++left_out;
      continue;
    }
    const Measured* predicted = predicted_step(trial);
    table.add({marker(i, summary.decision), to_text(trial.candidate.policy.wrap),
               std::to_string(trial.candidate.schedule.plan.units.size()),
               prefetch_text(trial.candidate.policy),
               to_text(trial.candidate.policy.reshard_after_forward),
               predicted != nullptr ? milliseconds(predicted->step_ns) : "-",
               predicted != nullptr ? milliseconds(predicted->metrics.exposed_wait) : "-",
               trial.candidate.is_default ? "default" : "",
               to_text(trial.candidate.memory.total())});
  }
  return left_out == 0
             ? table.text()
             : fmt::format("{}   and {} slower ones, in the record\n", table.text(), left_out);
}

/// "42 policies, 18 of them the same step as another; not measured: 12 pruned by simulation".
std::string left_out_line(const RunSummary& summary) {
  std::map<std::string, int> reasons;
  for (const Trial& trial : summary.trials) {
    if (!trial.dropped.empty()) {
      ++reasons[trial.dropped.substr(0, trial.dropped.find(':'))];
    }
  }
  std::string line = fmt::format("{} policies looked at, {} of them the same step as another",
                                 summary.enumerated, summary.duplicates);
  for (const auto& [reason, count] : reasons) {
    line += fmt::format("; {} {}", count, reason);
  }
  return line + "\n";
}

std::string how_measured(const RunSummary& summary) {
  for (const Trial& trial : summary.trials) {
    const Measured* step = measured_step(trial);
    if (step != nullptr && step->measurement) {
      const Measurement& measurement = *step->measurement;
      return fmt::format(
          "{} interleaved samples a plan, contents verified {} time{}; stopped: {}\n",
          measurement.summary.n, measurement.verified_steps,
          measurement.verified_steps == 1 ? "" : "s", measurement.stopped);
    }
  }
  return "";
}

}  // namespace

std::optional<double> prediction_error(const std::vector<Trial>& trials) {
  double sum = 0;
  int count = 0;
  for (const Trial& trial : trials) {
    const Measured* predicted = predicted_step(trial);
    const Measured* measured = measured_step(trial);
    if (predicted != nullptr && measured != nullptr && measured->step_ns > 0) {
      sum += std::abs(predicted->step_ns / measured->step_ns - 1);
      ++count;
    }
  }
  return count > 0 ? std::optional<double>(sum / count) : std::nullopt;
}

std::string header_text(const RunSummary& summary, const RunConfig& config) {
  const ModelSpec& model = config.model;
  const std::string scaling = model.scaling.empty() ? "" : fmt::format(" ({})", model.scaling);
  return fmt::format(
      "model    {}{}, {:.1f} M parameters, {} tokens a rank\n"
      "mesh     shard {} x replicate {}\n"
      "source   {}\n",
      model.name, scaling, static_cast<double>(parameter_total(model)) * 1e-6,
      config.batch.tokens() * config.batch.accumulate, summary.mesh.shard, summary.mesh.replicate,
      provenance_line(summary));
}

std::string tune_text(const RunSummary& summary, const RunConfig& config) {
  std::string text = header_text(summary, config);
  text += fmt::format("\n{}{}\n\n", summary.decision.simulated ? "simulated, not measured: " : "",
                      summary.decision.sentence);
  text += summary.decision.simulated ? simulated_table(summary) : measured_table(summary);
  text += fmt::format("\n{}", left_out_line(summary));
  if (!summary.decision.simulated) {
    text += how_measured(summary);
    if (const auto error = prediction_error(summary.trials)) {
      text += fmt::format("predictions are off by {:.1f} % on average\n", 100 * *error);
    }
  }
  text +=
      "memory: parameters, gradients, optimizer's moments and FSDP's buffers a rank; no "
      "activations\n";
  return text;
}

std::string replay_text(const RunSummary& summary, const RunConfig& config) {
  const Trial& trial = summary.trials.front();
  std::string text = header_text(summary, config);
  text += fmt::format("policy   {}, {} units, schedule {}\n\n{}\n\n", trial.candidate.label,
                      trial.candidate.schedule.plan.units.size(), trial.candidate.hash,
                      summary.decision.sentence);
  const Measured* measured = measured_step(trial);
  const Measured* step = measured != nullptr ? measured : predicted_step(trial);
  if (step == nullptr) {
    return text + outcome_text(trial) + "\n";
  }
  const StepMetrics& metrics = step->metrics;
  TextTable table({{"a step", TextTable::Align::left}, {"ms", TextTable::Align::right}});
  table.add({"step", milliseconds(metrics.step)});
  table.add({"matrix products", milliseconds(metrics.compute)});
  table.add({"copies", milliseconds(metrics.copies)});
  table.add({"collectives in flight", milliseconds(metrics.collectives)});
  table.add({"compute stream idle", milliseconds(metrics.exposed_wait)});
  text += table.text();
  text += fmt::format("\nall-gather {} busbw, reduce-scatter {} busbw\n",
                      to_text(BytesPerSecond{metrics.all_gather_busbw}),
                      to_text(BytesPerSecond{metrics.reduce_scatter_busbw}));
  text += fmt::format("memory a rank: {} resident, {} transient at most, {} in arenas\n",
                      to_text(trial.candidate.memory.resident),
                      to_text(trial.candidate.memory.transient_live),
                      to_text(trial.candidate.memory.arenas));
  return text + how_measured(summary);
}

std::string record_text(const std::string& path) {
  return fmt::format("record   {}\ndraw it  python3 plots/all.py {}\n", path, path);
}

}  // namespace fsdp
