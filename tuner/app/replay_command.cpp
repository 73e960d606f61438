#include <fmt/format.h>

#include <utility>

#include "bench/measure/environment.hpp"
#include "bench/measure/statistics.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/app/runner.hpp"
#include "tuner/evaluate/simulated_evaluator.hpp"
#include "tuner/report/text_report.hpp"
#include "tuner/space/candidate.hpp"

namespace fsdp {

namespace {

std::string milliseconds(double time_ns) { return fmt::format("{:.2f}", time_ns * 1e-6); }

/// The one policy is default and winner; what is judged is whether there is a figure.
Decision replay_decision(const Trial& trial, const Capabilities& capabilities) {
  Decision decision;
  decision.simulated = !capabilities.measures;
  const Measured* step = decision.simulated ? predicted_step(trial) : measured_step(trial);
  if (step == nullptr) {
    decision.sentence = fmt::format("the policy did not run: {}", outcome_text(trial));
    return decision;
  }
  decision.kind = Decision::Kind::default_fastest;
  decision.fastest = decision.winner = decision.default_place = 0;
  decision.compared = 1;
  if (!step->measurement) {
    decision.sentence =
        fmt::format("{} ms a step, simulated: not a measurement", milliseconds(step->step_ns));
    return decision;
  }
  const Summary& summary = step->measurement->summary;
  if (summary.low && summary.high) {
    decision.sentence =
        fmt::format("{} ms a step [{}, {}], contents verified", milliseconds(summary.median),
                    milliseconds(*summary.low), milliseconds(*summary.high));
  } else {
    decision.kind = Decision::Kind::too_few_samples;
    decision.sentence = fmt::format(
        "{} ms a step, contents verified; {} samples are too few for an interval, raise "
        "measure.stop.max_time",
        milliseconds(summary.median), summary.n);
  }
  return decision;
}

}  // namespace

ExitCode replay_command(const CommandContext& context) {
  const RunConfig& config = context.config;
  ControlPlane& control = context.job.control();
  Runner runner = make_runner(context);
  Progress progress(progress_style(control.rank()), stderr);
  RunSummary summary;
  summary.command = "replay";
  summary.mesh = runner.mesh;
  summary.capabilities = runner.executor->capabilities();
  summary.environment = environment_info(control, summary.capabilities);
  summary.cluster = config.cluster;
  summary.enumerated = 1;
  const Workload workload{config.model, runner.mesh, config.batch};
  Trial trial{.candidate = make_candidate(workload, config.policy),
              .predicted = {},
              .measured = {},
              .dropped = {}};
  trial.candidate.is_default = true;
  const Candidate* const candidate = &trial.candidate;
  if (summary.cluster) {
    trial.predicted = SimulatedEvaluator(*summary.cluster).evaluate({&candidate, 1}).front();
  }
  if (summary.capabilities.measures) {
    MeasuringOptions options = measuring_options(config, progress);
    options.memory = available_memory_per_rank(control);
    trial.measured =
        MeasuredEvaluator(*runner.executor, control, options).evaluate({&candidate, 1}).front();
  }
  progress.finish();
  summary.decision = replay_decision(trial, summary.capabilities);
  summary.trials.push_back(std::move(trial));
  return publish(context, summary, replay_text(summary, config));
}

}  // namespace fsdp
