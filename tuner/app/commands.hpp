// The commands, each from a checked invocation to an exit code. Results go to stdout on rank 0.
#pragma once

#include "core/config/run_config.hpp"
#include "core/units/error.hpp"
#include "tuner/app/command_line.hpp"
#include "tuner/app/job.hpp"

namespace fsdp {

struct CommandContext {
  const Invocation& invocation;
  const RunConfig& config;  ///< with the command line's overrides
  Job& job;
};

/// Calibrates (or takes the cluster file), simulates all policies, measures the best few, reports.
ExitCode tune_command(const CommandContext& context);
/// Measures the run file's own policy.
ExitCode replay_command(const CommandContext& context);
/// Units, collectives and memory of the run file's policy. No ranks, no clock.
ExitCode plan_command(const Invocation& invocation, const RunConfig& config);

}  // namespace fsdp
