// What the user typed, checked before anything starts.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bench/executor.hpp"
#include "core/config/run_config.hpp"

namespace fsdp {

enum class Command { tune, replay, plan };
/// `schedule`: plan's operations, one a line.
enum class Output { text, json, schedule };

struct Invocation {
  Command command = Command::tune;
  std::string config;  ///< path of the run file; empty only with `print_defaults`
  std::optional<BackendChoice> backend;
  std::optional<std::string> output_folder;
  std::optional<FaultInjection> fault;
  Output output = Output::text;
  enum class Action { run, print_config } action = Action::run;
};

/// The program is over: help, the version, or a usage error.
struct EarlyExit {
  ExitCode code = ExitCode::ok;
  std::string text;  ///< for stdout when the code is ok, else for stderr
};

/// `arguments` without the program's name. `RUN.yaml ...` is `tune RUN.yaml ...`.
std::variant<Invocation, EarlyExit> parse_command_line(std::vector<std::string> arguments);

/// "rank=1,op=all_gather,unit=model.layers.0"; throws UsageError naming what is wrong.
FaultInjection parse_fault(const std::string& text);

}  // namespace fsdp
