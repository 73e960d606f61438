#include "tuner/search/decision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/statistics.hpp"

namespace fsdp {

namespace {

const Measured* step_of(const Trial& trial, const Decision& decision) {
  return decision.simulated ? predicted_step(trial) : measured_step(trial);
}

std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }

/// "6.1 % [4.9, 7.3]", positive when `step` is faster than the default.
std::string gain_text(const Measured& step, const Measured& reference) {
  if (!step.against_first) {
    return fmt::format("{} %", percent(1 - step.step_ns / reference.step_ns));
  }
  const std::string gain = percent(-step.against_first->relative);
  const auto interval = relative_interval(*step.against_first, reference.step_ns);
  return interval
             ? fmt::format("{} % [{}, {}]", gain, percent(-interval->high), percent(-interval->low))
             : fmt::format("{} %", gain);
}

/// A measurement without an interval says nothing, not even for the default.
bool too_few(const Measured& step) { return step.measurement && !step.measurement->summary.low; }

Decision::Kind judge(const Measured& step, const Measured& reference, const Decision& decision,
                     double indifference) {
  if (decision.simulated) {
    return step.step_ns < (1 - indifference) * reference.step_ns ? Decision::Kind::faster
                                                                 : Decision::Kind::not_shown;
  }
  const std::string verdict = step.against_first ? step.against_first->verdict : "too few samples";
  if (verdict == "faster") {
    return Decision::Kind::faster;
  }
  return verdict == "too few samples" ? Decision::Kind::too_few_samples : Decision::Kind::not_shown;
}

void find_places(const std::vector<Trial>& trials, Decision& decision) {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].candidate.is_default) {
      decision.default_place = i;
    }
    const Measured* step = trials[i].dropped.empty() ? step_of(trials[i], decision) : nullptr;
    if (step == nullptr) {
      continue;
    }
    ++decision.compared;
    if (!decision.fastest ||
        step->step_ns < step_of(trials[*decision.fastest], decision)->step_ns) {
      decision.fastest = i;
    }
  }
}

std::string sentence(const std::vector<Trial>& trials, const Decision& decision) {
  if (decision.kind == Decision::Kind::nothing_ran) {
    return "no plan ran: nothing to recommend; the reasons stand beside the plans";
  }
  const Trial& fastest = trials[*decision.fastest];
  const std::string of =
      fmt::format("of {} {}", decision.compared, decision.simulated ? "simulated" : "measured");
  if (decision.kind == Decision::Kind::default_missing) {
    return fmt::format("the default did not run; {} is the fastest {}", fastest.candidate.label,
                       of);
  }
  const Trial& reference = trials[*decision.default_place];
  const std::string& reference_label = reference.candidate.label;
  if (decision.kind == Decision::Kind::default_fastest) {
    return fmt::format("the default ({}) is the fastest {}: keep it", reference_label, of);
  }
  const std::string gain = gain_text(*step_of(fastest, decision), *step_of(reference, decision));
  switch (decision.kind) {
    case Decision::Kind::faster:
      return fmt::format("{} is {}{} faster than the default ({})", fastest.candidate.label,
                         decision.simulated ? "predicted to be " : "", gain, reference_label);
    case Decision::Kind::too_few_samples:
      return fmt::format(
          "too few samples ({}, {} needed) to compare anything with the default ({}): no verdict; "
          "raise tune.budget or measure.stop.max_time",
          measured_step(reference)->measurement->summary.n, interval_samples, reference_label);
    default:
      return fmt::format(
          "no difference shown between {} ({} faster) and the default ({}): keep "
          "the default",
          fastest.candidate.label, gain, reference_label);
  }
}

}  // namespace

Decision decide(const std::vector<Trial>& trials, double indifference) {
  Decision decision;
  decision.simulated = std::none_of(trials.begin(), trials.end(),
                                    [](const Trial& trial) { return trial.measured.has_value(); });
  find_places(trials, decision);
  if (decision.fastest) {
    const std::optional<std::size_t> place = decision.default_place;
    const Measured* reference =
        place && trials[*place].dropped.empty() ? step_of(trials[*place], decision) : nullptr;
    if (reference == nullptr) {
      decision.kind = Decision::Kind::default_missing;
      decision.winner = decision.fastest;
    } else if (decision.fastest == place) {
      decision.kind =
          too_few(*reference) ? Decision::Kind::too_few_samples : Decision::Kind::default_fastest;
      decision.winner = place;
    } else {
      decision.kind =
          judge(*step_of(trials[*decision.fastest], decision), *reference, decision, indifference);
      decision.winner = decision.kind == Decision::Kind::faster ? decision.fastest : place;
    }
  }
  decision.sentence = sentence(trials, decision);
  return decision;
}

ExitCode exit_code(const Decision& decision) {
  if (decision.kind == Decision::Kind::nothing_ran) {
    return ExitCode::environment;
  }
  return decision.kind == Decision::Kind::too_few_samples ? ExitCode::no_verdict : ExitCode::ok;
}

}  // namespace fsdp
