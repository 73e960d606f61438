#include "tuner/app/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "bench/backend/sim/backend.hpp"
#include "tuner/report/text_report.hpp"

namespace fsdp {

namespace {

ConfigError config_error(const RunConfig& config, const std::string& key, const std::string& reason,
                         const std::string& suggestion) {
  return ConfigError({.file = config.file, .line = 0, .column = 0, .key = key}, reason, suggestion);
}

/// Letters and digits of `text`, everything else as one dash.
std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  return result;
}

/// "tune-gpt2-124m-20240131T120000Z", with the scheduler's job where there is one.
std::string record_name(const RunSummary& summary, const RunConfig& config) {
  std::string time = summary.environment.started_utc;
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  std::string name = fmt::format("{}-{}-{}", summary.command, slug(config.model.name), time);
  const auto job = summary.environment.variables.find("SLURM_JOB_ID");
  if (job != summary.environment.variables.end()) {
    name += "-job" + slug(job->second);
  }
  return name;
}

}  // namespace

BackendChoice resolve_backend(const RunConfig& config) {
  const BackendChoice choice = config.measure.backend;
  if (choice == BackendChoice::mpi && measuring() == Measuring::not_built) {
    throw EnvironmentError(
        "measure.backend is mpi, but this fsdp-tune was built without MPI; configure with "
        "-DFSDP_TUNE_MPI=ON, or use --backend sim with a cluster file");
  }
  if (choice == BackendChoice::mpi ||
      (choice == BackendChoice::automatic && measuring() == Measuring::built)) {
    return BackendChoice::mpi;
  }
  if (!config.cluster) {
    throw config_error(config, "cluster", "the simulator needs a cluster file",
                       "add for example 'cluster: clusters/illustrative-8.yaml', or measure with "
                       "--backend mpi");
  }
  return BackendChoice::sim;
}

DeviceMesh resolve_mesh(const RunConfig& config, int ranks) {
  if (!config.mesh) {
    return {.replicate = 1, .shard = ranks};
  }
  const DeviceMesh mesh = *config.mesh;
  if (ranks % mesh.shard != 0) {
    throw config_error(config, "mesh.shard",
                       fmt::format("{} does not divide {} ranks", mesh.shard, ranks),
                       fmt::format("start a multiple of {} ranks, or leave 'mesh' out to put all "
                                   "ranks into one shard group",
                                   mesh.shard));
  }
  if (mesh.world() != ranks) {
    throw config_error(
        config, "mesh.replicate",
        fmt::format("replicate {} x shard {} is {}, but {} ranks were started", mesh.replicate,
                    mesh.shard, mesh.world(), ranks),
        fmt::format("start {} ranks, or set replicate: {}", mesh.world(), ranks / mesh.shard));
  }
  return mesh;
}

DeviceMesh planned_mesh(const RunConfig& config) {
  if (config.mesh) {
    return *config.mesh;
  }
  if (config.cluster) {
    return {.replicate = 1, .shard = config.cluster->ranks};
  }
  throw config_error(config, "mesh", "missing; no ranks are started here, so it must say how many",
                     "add for example 'mesh: {shard: 8}'");
}

Runner make_runner(const CommandContext& context) {
  Runner runner;
  runner.backend = resolve_backend(context.config);
  if (runner.backend == BackendChoice::sim) {
    runner.mesh = planned_mesh(context.config);
    runner.executor = sim::make_executor(*context.config.cluster);
    return runner;
  }
  runner.mesh = resolve_mesh(context.config, context.job.control().size());
  runner.executor = context.job.measuring_executor(context.invocation.fault);
  return runner;
}

MeasuringOptions measuring_options(const RunConfig& config, Progress& progress) {
  MeasuringOptions options;
  options.sampler.stop = config.measure.stop;
  options.sampler.warmup = config.measure.warmup;
  options.sampler.verify_every = config.measure.verify_every;
  options.sampler.seed = config.measure.seed;
  options.indifference = config.tune.indifference;
  options.on_phase = [&progress](const std::string& what) { progress.phase(what); };
  options.on_batch = [&progress](const SamplingProgress& state, const Candidate& fastest) {
    const double limit = std::max(1.0, static_cast<double>(state.limit.value));
    const Nanoseconds median{static_cast<std::int64_t>(state.fastest_median_ns)};
    progress.update({.fraction = static_cast<double>(state.elapsed.value) / limit,
                     .best = fmt::format("{} samples, best so far {} ({})", state.blocks,
                                         to_text(median), fastest.label),
                     .left = state.limit - state.elapsed});
  };
  return options;
}

ExitCode publish(const CommandContext& context, const RunSummary& summary,
                 const std::string& report) {
  ExitCode code = exit_code(summary.decision);
  if (context.job.control().rank() != 0) {
    return code;
  }
  const RunRecord record = to_record(summary, context.config);
  const bool json = context.invocation.output == Output::json;
  fmt::print("{}", json ? to_json(record) : report);
  try {
    const std::string path =
        write_record(record, context.config.output, record_name(summary, context.config));
    fmt::print(json ? stderr : stdout, "{}", record_text(path));
  } catch (const EnvironmentError& error) {
    fmt::print(stderr, "fsdp-tune: the record is not kept: {}\n", error.what());
    code = worst(code, error.exit_code());
  }
  std::fflush(stdout);
  return code;
}

}  // namespace fsdp
