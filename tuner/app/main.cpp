// fsdp-tune: reads the command line, joins the job, runs one command, and ends all ranks with one
// exit code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <variant>

#include "tuner/app/agreement.hpp"
#include "tuner/app/command_line.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/app/job.hpp"

namespace fsdp {

namespace {

LoadedConfig load(const Invocation& invocation) {
  LoadedConfig loaded;
  try {
    loaded.config = load_run_config(invocation.config);
    loaded.config->measure.backend = invocation.backend.value_or(loaded.config->measure.backend);
    loaded.config->output = invocation.output_folder.value_or(loaded.config->output);
  } catch (const Error& error) {
    loaded.code = error.exit_code();
    loaded.message = error.what();
  } catch (const std::exception& error) {
    loaded.code = ExitCode::environment;
    loaded.message = fmt::format("cannot read {}: {}", invocation.config, error.what());
  }
  return loaded;
}

void print_error(const std::string& message) {
  std::fflush(stdout);
  std::size_t start = 0;
  while (start <= message.size()) {
    const std::size_t end = std::min(message.find('\n', start), message.size());
    fmt::print(stderr, "fsdp-tune: {}\n", message.substr(start, end - start));
    start = end + 1;
  }
}

/// Errors that follow from data which all ranks share, so every rank has thrown the same one.
bool is_shared(ExitCode code) { return code == ExitCode::usage || code == ExitCode::wrong_data; }

ExitCode run_command(const CommandContext& context) {
  return context.invocation.command == Command::replay ? replay_command(context)
                                                       : tune_command(context);
}

/// Ends the job with `code`: others may be waiting for this rank.
[[noreturn]] void fail_alone(Job& job, const std::string& message, ExitCode code) {
  print_error(job.control().size() > 1 ? fmt::format("rank {}: {}", job.control().rank(), message)
                                       : message);
  job.abort(code);
  std::_Exit(
      static_cast<int>(code));  // the compiler does not trust a virtual function to not return
}

ExitCode run_on_job(const Invocation& invocation, const LoadedConfig& loaded, Job& job) {
  ControlPlane& control = job.control();
  try {
    ExitCode code = ExitCode::ok;
    if (const auto failure = agree_on_config(control, loaded)) {
      if (control.rank() == 0) {
        print_error(failure->message);
      }
      return failure->code;
    }
    try {
      code = run_command({invocation, *loaded.config, job});
    } catch (const Error& error) {
      if (!is_shared(error.exit_code())) {
        throw;
      }
      if (control.rank() == 0) {
        print_error(error.what());
      }
      code = error.exit_code();
    }
    return agree_on_exit(control, code);
  } catch (const Error& error) {
    fail_alone(job, error.what(), error.exit_code());
  } catch (const std::exception& error) {
    fail_alone(job, fmt::format("internal error: {}", error.what()), ExitCode::environment);
  }
}

/// A lone process reads, plans and simulates; whoever measures, or was started among others, joins
/// the job, so that one rank speaks for all.
std::unique_ptr<Job> make_job(const LoadedConfig& loaded) {
  const bool measures = loaded.config && loaded.config->measure.backend != BackendChoice::sim;
  if (measuring() == Measuring::built && (measures || started_among_others())) {
    const MeasureConfig defaults;
    return join_job(loaded.config ? loaded.config->measure.timeout : defaults.timeout);
  }
  return lone_job();
}

ExitCode print_configuration(const Invocation& invocation) {
  const LoadedConfig loaded =
      invocation.config.empty() ? LoadedConfig{RunConfig{}, ExitCode::ok, ""} : load(invocation);
  if (!loaded.config) {
    print_error(loaded.message);
    return loaded.code;
  }
  fmt::print("{}", print_config(*loaded.config));
  return ExitCode::ok;
}

ExitCode plan(const Invocation& invocation) {
  const LoadedConfig loaded = load(invocation);
  if (!loaded.config) {
    print_error(loaded.message);
    return loaded.code;
  }
  return plan_command(invocation, *loaded.config);
}

ExitCode run(const Invocation& invocation) {
  if (invocation.action == Invocation::Action::print_config) {
    return print_configuration(invocation);
  }
  if (invocation.command == Command::plan) {
    return plan(invocation);
  }
  const LoadedConfig loaded = load(invocation);
  const std::unique_ptr<Job> job = make_job(loaded);
  const ExitCode code = run_on_job(invocation, loaded, *job);
  job->finish(code);
  return code;
}

ExitCode main_code(int argc, char** argv) {
  try {
    const auto parsed = parse_command_line({argv + 1, argv + argc});
    if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
      fmt::print(exit->code == ExitCode::ok ? stdout : stderr, "{}", exit->text);
      return exit->code;
    }
    return run(std::get<Invocation>(parsed));
  } catch (const Error& error) {
    print_error(error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
    return ExitCode::environment;
  }
}

}  // namespace

}  // namespace fsdp

int main(int argc, char** argv) { return static_cast<int>(fsdp::main_code(argc, argv)); }
