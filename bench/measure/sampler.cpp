#include "bench/measure/sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "bench/measure/statistics.hpp"
#include "core/units/error.hpp"

namespace fsdp {

namespace {

/// splitmix64: a counter-based generator, small enough to be the same everywhere.
std::uint64_t mix(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15ULL;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
  return state ^ (state >> 31);
}

std::size_t nearest_to_median(const Measurement& measurement) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < measurement.step_ns.size(); ++i) {
    if (std::abs(measurement.step_ns[i] - measurement.summary.median) <
        std::abs(measurement.step_ns[best] - measurement.summary.median)) {
      best = i;
    }
  }
  return best;
}

}  // namespace

Nanoseconds steady_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

std::vector<std::size_t> block_order(std::size_t plans, std::uint64_t seed, int block) {
  std::vector<std::size_t> order(plans);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t state = mix(seed ^ mix(static_cast<std::uint64_t>(block)));
  for (std::size_t left = plans; left > 1; --left) {
    state = mix(state);
    std::swap(order[left - 1], order[static_cast<std::size_t>(state % left)]);
  }
  return order;
}

/// Everything one call of measure_interleaved gathers.
struct Sampler::Run {
  RelativeErrorCriterion criterion;
  Nanoseconds limit{0};    ///< of sampling: what the caps leave
  Nanoseconds start{0};    ///< of the call, then of sampling
  Nanoseconds elapsed{0};  ///< maximum over ranks, as of the last exchange
  int blocks = 0;
  std::vector<std::vector<double>> own_ns{};       ///< [plan][iteration], this rank
  std::vector<std::vector<Timeline>> timelines{};  ///< [plan][iteration], this rank
  std::vector<Measurement> measurements{};         ///< by plan
  int exchanged = 0;                               ///< blocks already in the measurements
};

Sampler::Sampler(ControlPlane& control, const SamplerOptions& options, Clock clock)
    : control_(control), options_(options), clock_(std::move(clock)) {
  expects(options_.batch >= 1, "a batch holds at least one block");
}

SampledStep Sampler::measure(const SampledPlan& plan) {
  return std::move(measure_interleaved({&plan, 1}).front());
}

std::vector<SampledStep> Sampler::measure_interleaved(std::span<const SampledPlan> plans) {
  Run run{.criterion = RelativeErrorCriterion(options_.stop),
          .limit = options_.stop.max_time,
          .start = clock_()};
  run.own_ns.resize(plans.size());
  run.timelines.resize(plans.size());
  run.measurements.resize(plans.size());
  verify(plans, run);
  warm_up(plans);
  begin_sampling(run);
  bool stopped = plans.empty();
  while (!stopped) {
    const int last = std::min(run.blocks + options_.batch, options_.stop.max_samples);
    while (run.blocks < last) {
      run_block(plans, run);
    }
    exchange(run);
    report(run);
    stopped = decide(run);
  }
  std::vector<SampledStep> result(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Measurement& measurement = run.measurements[i];
    measurement.warmup = options_.warmup;
    const std::size_t typical = nearest_to_median(measurement);
    result[i] = {std::move(measurement), std::move(run.timelines[i][typical]),
                 plans[i].step->allocation()};
  }
  return result;
}

void Sampler::verify(std::span<const SampledPlan> plans, Run& run) {
  if (options_.verification == Verification::none) {
    return;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    control_.barrier("before verifying contents");
    agree_on_contents(control_, plans[i].step->run_verified());
    ++run.measurements[i].verified_steps;
  }
}

void Sampler::warm_up(std::span<const SampledPlan> plans) {
  for (const SampledPlan& plan : plans) {
    Timeline timeline = timeline_for(*plan.schedule);
    for (int i = 0; i < options_.warmup; ++i) {
      control_.barrier("before a warm-up step");
      plan.step->run(timeline);
    }
  }
}

void Sampler::begin_sampling(Run& run) {
  double spent = static_cast<double>((clock_() - run.start).value);
  control_.max({&spent, 1}, "agreeing on the time spent before sampling");
  if (options_.total_limit.value > 0) {
    const Nanoseconds left = options_.total_limit - Nanoseconds{static_cast<std::int64_t>(spent)};
    run.limit = std::clamp(left, Nanoseconds{0}, run.limit);
    StopConfig stop = options_.stop;
    stop.max_time = run.limit;
    run.criterion = RelativeErrorCriterion(stop);
  }
  run.start = clock_();
}

void Sampler::run_block(std::span<const SampledPlan> plans, Run& run) {
  for (const std::size_t i : block_order(plans.size(), options_.seed, run.blocks)) {
    Timeline timeline = timeline_for(*plans[i].schedule);
    control_.barrier("before a measured step");
    plans[i].step->run(timeline);
    run.own_ns[i].push_back(static_cast<double>(timeline.step.value));
    run.timelines[i].push_back(std::move(timeline));
  }
  ++run.blocks;
  if (options_.verify_every > 0 && run.blocks % options_.verify_every == 0) {
    verify(plans, run);
  }
}

/// Ranks fill their own column of a zero matrix; the maximum over ranks is the whole matrix.
void Sampler::exchange(Run& run) {
  const auto ranks = static_cast<std::size_t>(control_.size());
  const auto own = static_cast<std::size_t>(control_.rank());
  const std::size_t plans = run.measurements.size();
  const auto first = static_cast<std::size_t>(run.exchanged);
  const auto fresh = static_cast<std::size_t>(run.blocks - run.exchanged);
  std::vector<double> figures(plans * fresh * ranks + 1, 0.0);
  for (std::size_t i = 0; i < plans; ++i) {
    for (std::size_t k = 0; k < fresh; ++k) {
      figures[(i * fresh + k) * ranks + own] = run.own_ns[i][first + k];
    }
  }
  figures.back() = static_cast<double>((clock_() - run.start).value);
  control_.max(figures, "exchanging step times");
  run.elapsed = {static_cast<std::int64_t>(figures.back())};
  for (std::size_t i = 0; i < plans; ++i) {
    Measurement& measurement = run.measurements[i];
    for (std::size_t k = 0; k < fresh; ++k) {
      const auto row = figures.begin() + static_cast<std::ptrdiff_t>((i * fresh + k) * ranks);
      measurement.rank_step_ns.emplace_back(row, row + static_cast<std::ptrdiff_t>(ranks));
      measurement.step_ns.push_back(
          *std::max_element(row, row + static_cast<std::ptrdiff_t>(ranks)));
    }
    measurement.summary = summarise(measurement.step_ns);
  }
  run.exchanged = run.blocks;
}

bool Sampler::decide(Run& run) {
  // A cap ends all plans; precision ends them only together, so that samples stay paired.
  bool all = true;
  for (Measurement& measurement : run.measurements) {
    const auto reason = run.criterion.reason_to_stop({measurement.summary, run.elapsed});
    measurement.stopped = reason.value_or("");
    all = all && reason.has_value();
  }
  return all;
}

void Sampler::report(const Run& run) const {
  if (!options_.on_batch) {
    return;
  }
  const auto fastest = std::min_element(
      run.measurements.begin(), run.measurements.end(),
      [](const auto& a, const auto& b) { return a.summary.median < b.summary.median; });
  options_.on_batch({.blocks = run.blocks,
                     .elapsed = run.elapsed,
                     .limit = run.limit,
                     .fastest = static_cast<std::size_t>(fastest - run.measurements.begin()),
                     .fastest_median_ns = fastest->summary.median});
}

}  // namespace fsdp
