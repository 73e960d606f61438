#include "tuner/app/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "bench/measure/environment.hpp"

namespace fsdp {

namespace {

constexpr const char* description =
    "Finds which modules should share an FSDP unit, and how deep to prefetch, by replaying the\n"
    "collectives, copies and matrix products of a training step on this machine.\n"
    "`fsdp-tune RUN.yaml` is `fsdp-tune tune RUN.yaml`; start it with mpiexec or srun, one rank a\n"
    "device.";

constexpr const char* footer =
    "Exit codes (over ranks the worst wins):\n"
    "  0  measured, or planned            1  a threshold was missed\n"
    "  2  warnings, where they count      3  wrong data\n"
    "  4  no verdict: too few samples     5  environment or launch fault\n"
    "  6  a wait for a rank timed out    64  bad usage or run file\n"
    "Results go to stdout, progress and errors to stderr.";

constexpr std::array<std::string_view, 3> commands{"tune", "replay", "plan"};

bool looks_like_a_file(const std::string& text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.find('/') != std::string::npos;
}

/// Options, and everything else that stands before a command: `tune` is the command that is meant.
void name_the_command(std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return;
  }
  const std::string& first = arguments.front();
  const bool of_program = first == "-h" || first == "--help" || first == "--version";
  if (!of_program && (first.starts_with('-') || looks_like_a_file(first))) {
    arguments.insert(arguments.begin(), "tune");
  }
}

EarlyExit usage_error(const std::string& what) {
  return {ExitCode::usage, fmt::format("fsdp-tune: {}\nRun `fsdp-tune --help`.\n", what)};
}

int parse_rank(const std::string& value) {
  int rank = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rank);
  if (error != std::errc{} || end != value.data() + value.size() || rank < 0) {
    throw UsageError(fmt::format("--inject-fault: rank '{}' is not a rank", value));
  }
  return rank;
}

/// What CLI11 fills, before it becomes an Invocation.
struct Raw {
  std::string config;
  std::string backend;
  std::string output_folder;
  std::string fault;
  bool json = false;
  bool schedule = false;
  bool print_config = false;
};

void add_backend_options(CLI::App& command, Raw& raw) {
  command
      .add_option("--backend", raw.backend,
                  "auto, sim (needs `cluster` in the run file) or mpi; default: the run file's")
      ->check(CLI::IsMember({"auto", "sim", "mpi"}));
  command.add_option("--output", raw.output_folder,
                     "folder of the record; default: the run file's");
  command
      .add_option("--inject-fault", raw.fault,
                  "debugging: flip a byte to see it found, rank=1,op=all_gather,unit=NAME")
      ->type_name("SPEC");
}

void add_commands(CLI::App& app, Raw& raw) {
  CLI::App& tune = *app.add_subcommand("tune", "calibrate, search, measure, report");
  CLI::App& replay = *app.add_subcommand("replay", "measure the run file's own policy");
  CLI::App& plan = *app.add_subcommand(
      "plan", "units, collectives, memory and findings of the run file's policy; nothing runs");
  for (CLI::App* command : {&tune, &replay, &plan}) {
    CLI::Option* config =
        command->add_option("CONFIG", raw.config, "the run file (YAML)")->type_name("FILE");
    if (command != &tune) {
      config->required();
    }
    command->add_flag("--json", raw.json, "write a JSON document to stdout instead of text");
    command->footer(footer);
  }
  plan.add_flag("--schedule", raw.schedule,
                "write every operation of the step instead, repeats of equal units folded")
      ->excludes("--json");
  add_backend_options(tune, raw);
  add_backend_options(replay, raw);
  tune.add_flag("--print-config", raw.print_config,
                "print the whole configuration with every default, and stop");
}

BackendChoice backend_of(const std::string& text) {
  const std::map<std::string, BackendChoice> choices{
      {"auto", BackendChoice::automatic}, {"sim", BackendChoice::sim}, {"mpi", BackendChoice::mpi}};
  return choices.at(text);
}

std::variant<Invocation, EarlyExit> to_invocation(const CLI::App& app, const Raw& raw) {
  Invocation invocation;
  invocation.command = app.got_subcommand("plan")     ? Command::plan
                       : app.got_subcommand("replay") ? Command::replay
                                                      : Command::tune;
  invocation.config = raw.config;
  invocation.output = raw.json ? Output::json : raw.schedule ? Output::schedule : Output::text;
  invocation.action = raw.print_config ? Invocation::Action::print_config : Invocation::Action::run;
  if (raw.config.empty() && !raw.print_config) {
    return usage_error("tune needs a run file: fsdp-tune RUN.yaml");
  }
  if (!raw.backend.empty()) {
    invocation.backend = backend_of(raw.backend);
  }
  if (!raw.output_folder.empty()) {
    invocation.output_folder = raw.output_folder;
  }
  if (!raw.fault.empty()) {
    try {
      invocation.fault = parse_fault(raw.fault);
    } catch (const UsageError& error) {
      return usage_error(error.what());
    }
  }
  return invocation;
}

}  // namespace

FaultInjection parse_fault(const std::string& text) {
  FaultInjection fault;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (key == "rank") {
      fault.rank = parse_rank(value);
    } else if (key == "op" && (value == "all_gather" || value == "reduce_scatter")) {
      fault.operation = value;
    } else if (key == "unit" && !value.empty()) {
      fault.unit = value;
    } else {
      throw UsageError(
          fmt::format("--inject-fault: '{}' is none of rank=N, op=all_gather, "
                      "op=reduce_scatter, unit=NAME",
                      part));
    }
    start = end + 1;
  }
  return fault;
}

std::variant<Invocation, EarlyExit> parse_command_line(std::vector<std::string> arguments) {
  name_the_command(arguments);
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      std::find(commands.begin(), commands.end(), arguments.front()) == commands.end()) {
    return usage_error(
        fmt::format("unknown command '{}'; the commands are tune, replay and plan (a run file's "
                    "name ends in .yaml)",
                    arguments.front()));
  }
  CLI::App app(description, "fsdp-tune");
  app.footer(footer);
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("fsdp-tune {} ({})", tool_version(), git_state()));
  Raw raw;
  add_commands(app, raw);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{ExitCode::ok, app.help()};
  } catch (const CLI::CallForVersion& version) {
    return EarlyExit{ExitCode::ok, fmt::format("{}\n", version.what())};
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  return to_invocation(app, raw);
}

}  // namespace fsdp
