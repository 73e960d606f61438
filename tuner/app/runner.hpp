// What commands that run steps have in common: which backend, which mesh, which time is left, and
// where results go.
#pragma once

#include <memory>
#include <optional>

#include "bench/executor.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/evaluate/measured_evaluator.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/report/run_summary.hpp"

namespace fsdp {

/// Never `automatic`: mpi where this program can measure, else sim. Throws ConfigError or
/// EnvironmentError when the choice cannot be had.
BackendChoice resolve_backend(const RunConfig& config);

/// The run file's mesh, or all ranks in one shard group. Throws ConfigError when the mesh does not
/// hold exactly `ranks` ranks.
DeviceMesh resolve_mesh(const RunConfig& config, int ranks);

/// The mesh of a command that starts no ranks: the run file's, else the cluster's ranks in one
/// shard group. Throws ConfigError naming `mesh` when neither says.
DeviceMesh planned_mesh(const RunConfig& config);

struct Runner {
  BackendChoice backend = BackendChoice::sim;
  std::unique_ptr<Executor> executor;
  DeviceMesh mesh;
};
Runner make_runner(const CommandContext& context);

/// How survivors are measured: the run file's settings, progress on stderr.
MeasuringOptions measuring_options(const RunConfig& config, Progress& progress);

/// Rank 0 writes the record and prints the report (or the record, with --json). A record that
/// cannot be written makes the code an environment fault; the report is printed all the same.
ExitCode publish(const CommandContext& context, const RunSummary& summary,
                 const std::string& report);

}  // namespace fsdp
