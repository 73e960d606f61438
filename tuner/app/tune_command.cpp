#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/calibrate/calibrate.hpp"
#include "bench/measure/environment.hpp"
#include "tuner/app/agreement.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/app/runner.hpp"
#include "tuner/evaluate/simulated_evaluator.hpp"
#include "tuner/report/text_report.hpp"
#include "tuner/search/prune.hpp"
#include "tuner/space/search_space.hpp"

namespace fsdp {

namespace {

/// The most that calibration may take of the whole budget, and of anybody's time.
constexpr double calibration_share = 0.2;
constexpr Nanoseconds calibration_cap{12'000'000'000};
/// Kept back for the block that is running when the time is up, and for reporting.
constexpr double reserve_share = 0.05;
/// Of the host's available memory; the rest is for the system and for what MPI allocates.
constexpr double memory_share = 0.6;

class TuneRun {
 public:
  explicit TuneRun(const CommandContext& context)
      : context_(context),
        config_(context.config),
        control_(context.job.control()),
        progress_(progress_style(control_.rank()), stderr),
        start_(steady_now()) {}

  ExitCode run() {
    runner_ = make_runner(context_);
    summary_.command = "tune";
    summary_.mesh = runner_.mesh;
    summary_.capabilities = runner_.executor->capabilities();
    summary_.environment = environment_info(control_, summary_.capabilities);
    enumerate_policies();
    summary_.cluster = config_.cluster ? *config_.cluster : calibrated();
    predict();
    const auto survivors = pruned();
    if (summary_.capabilities.measures) {
      measure(survivors);
    }
    progress_.finish();
    summary_.decision = decide(summary_.trials, config_.tune.indifference);
    return publish(context_, summary_, tune_text(summary_, config_));
  }

 private:
  void enumerate_policies() {
    progress_.phase("planning");
    const Workload workload{config_.model, runner_.mesh, config_.batch};
    SearchSpace space = enumerate(workload, config_.policy, config_.space);
    summary_.enumerated = space.enumerated;
    summary_.duplicates = space.duplicates;
    for (Candidate& candidate : space.candidates) {
      summary_.trials.push_back(
          {.candidate = std::move(candidate), .predicted = {}, .measured = {}, .dropped = {}});
    }
  }

  ClusterSpec calibrated() {
    std::vector<const Schedule*> schedules;
    for (const Trial& trial : summary_.trials) {
      if (!config_.memory_limit || trial.candidate.memory.total() <= *config_.memory_limit) {
        schedules.push_back(&trial.candidate.schedule);
      }
    }
    if (schedules.empty()) {
      (void)prune(summary_.trials, {.memory_limit = config_.memory_limit,
                                    .available = std::nullopt});  // throws, naming the need
    }
    const auto share = static_cast<std::int64_t>(calibration_share *
                                                 static_cast<double>(config_.tune.budget.value));
    CalibrationRequest request;
    request.needs = calibration_needs(schedules);
    request.budget = std::min(calibration_cap, Nanoseconds{share});
    progress_.phase("calibrating");
    request.on_sweep = [this](const std::string& what, int done, int total) {
      progress_.update({.fraction = static_cast<double>(done) / total, .best = what, .left = {0}});
    };
    return calibrate(*runner_.executor, control_, request);
  }

  void predict() {
    progress_.phase(fmt::format("simulating {} plans", summary_.trials.size()));
    std::vector<const Candidate*> candidates;
    for (const Trial& trial : summary_.trials) {
      candidates.push_back(&trial.candidate);
    }
    auto predictions = SimulatedEvaluator(*summary_.cluster).evaluate(candidates);
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      summary_.trials[i].predicted = std::move(predictions[i]);
    }
  }

  std::vector<std::size_t> pruned() {
    PruneLimits limits;
    limits.memory_limit = config_.memory_limit;
    limits.survivors = static_cast<int>(summary_.trials.size());
    limits.indifference = config_.tune.indifference;
    if (summary_.capabilities.measures) {
      limits.survivors = config_.tune.survivors;
      available_ = available_memory_per_rank(control_);
      if (available_) {
        available_->value =
            static_cast<std::int64_t>(memory_share * static_cast<double>(available_->value));
      }
      limits.available = available_;
    }
    return prune(summary_.trials, limits);
  }

  void measure(const std::vector<std::size_t>& survivors) {
    std::vector<const Candidate*> candidates;
    std::vector<std::string> hashes;
    for (const std::size_t i : survivors) {
      candidates.push_back(&summary_.trials[i].candidate);
      hashes.push_back(summary_.trials[i].candidate.hash);
    }
    agree_on_plans(control_, hashes);
    MeasuringOptions options = measuring_options(config_, progress_);
    options.memory = available_;
    double left = (1 - reserve_share) * static_cast<double>(config_.tune.budget.value) -
                  static_cast<double>((steady_now() - start_).value);
    control_.min({&left, 1}, "agreeing on the time left");
    options.budget = {static_cast<std::int64_t>(std::max(1.0, left))};
    MeasuredEvaluator evaluator(*runner_.executor, control_, options);
    auto outcomes = evaluator.evaluate(candidates);
    const bool default_first = summary_.trials[survivors.front()].candidate.is_default;
    for (std::size_t k = 0; k < survivors.size(); ++k) {
      if (auto* measured = std::get_if<Measured>(&outcomes[k]); measured && !default_first) {
        measured->against_first.reset();  // the first is not the default: nothing to compare with
      }
      summary_.trials[survivors[k]].measured = std::move(outcomes[k]);
    }
  }

  const CommandContext& context_;
  const RunConfig& config_;
  ControlPlane& control_;
  Progress progress_;
  Nanoseconds start_;
  Runner runner_;
  RunSummary summary_;
  std::optional<Bytes> available_;
};

}  // namespace

ExitCode tune_command(const CommandContext& context) { return TuneRun(context).run(); }

}  // namespace fsdp
