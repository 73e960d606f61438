#include "tuner/app/command_line.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

Invocation parsed(const std::vector<std::string>& arguments) {
  const auto result = parse_command_line(arguments);
  if (const auto* exit = std::get_if<EarlyExit>(&result)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<Invocation>(result);
}

EarlyExit ended(const std::vector<std::string>& arguments) {
  const auto result = parse_command_line(arguments);
  if (const auto* exit = std::get_if<EarlyExit>(&result)) {
    return *exit;
  }
  ADD_FAILURE() << "was accepted";
  return {};
}

TEST(CommandLine, ARunFileAloneIsTune) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"run.yaml"}, {"tune", "run.yaml"}, {"configs/run", "--json"}, {"--json", "run.yaml"}}) {
    EXPECT_EQ(parsed(arguments).command, Command::tune);
  }
  EXPECT_EQ(parsed({"run.yaml"}).config, "run.yaml");
  EXPECT_EQ(parsed({"--backend", "sim", "run.yaml"}).backend, BackendChoice::sim);
}

TEST(CommandLine, OptionsOfTune) {
  const Invocation invocation = parsed({"tune", "run.yaml", "--backend", "mpi", "--output", "there",
                                        "--json", "--inject-fault", "rank=1,op=reduce_scatter"});
  EXPECT_EQ(invocation.backend, BackendChoice::mpi);
  EXPECT_EQ(invocation.output_folder, "there");
  EXPECT_EQ(invocation.output, Output::json);
  EXPECT_EQ(invocation.fault->rank, 1);
  EXPECT_EQ(invocation.fault->operation, "reduce_scatter");
}

TEST(CommandLine, OtherCommands) {
  EXPECT_EQ(parsed({"plan", "run.yaml", "--json"}).command, Command::plan);
  EXPECT_EQ(parsed({"replay", "run.yaml"}).command, Command::replay);
  EXPECT_EQ(parsed({"tune", "--print-config"}).action, Invocation::Action::print_config);
}

TEST(CommandLine, HelpAndVersionEndWell) {
  const EarlyExit help = ended({"--help"});
  EXPECT_EQ(help.code, ExitCode::ok);
  EXPECT_NE(help.text.find("64  bad usage"), std::string::npos);
  EXPECT_EQ(ended({"--version"}).code, ExitCode::ok);
  EXPECT_NE(ended({"tune", "--help"}).text.find("--print-config"), std::string::npos);
}

TEST(CommandLine, BadUsageIsCode64) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"tunee"},
                                             {"tune"},
                                             {"plan"},
                                             {"run.yaml", "--nonsense"},
                                             {"run.yaml", "--backend", "gpu"},
                                             {"run.yaml", "other.yaml"},
                                             {"plan", "run.yaml", "--backend", "sim"},
                                             {"run.yaml", "--inject-fault", "rank=x"}}) {
    EXPECT_EQ(ended(arguments).code, ExitCode::usage);
  }
  EXPECT_NE(ended({"tunee"}).text.find("unknown command 'tunee'"), std::string::npos);
}

TEST(ParseFault, ReadsItsThreeKeys) {
  const FaultInjection fault = parse_fault("rank=2,op=all_gather,unit=model.layers.0");
  EXPECT_EQ(fault.rank, 2);
  EXPECT_EQ(fault.operation, "all_gather");
  EXPECT_EQ(fault.unit, "model.layers.0");
  EXPECT_EQ(parse_fault("unit=a").rank, 0);
}

TEST(ParseFault, NamesWhatItDoesNotUnderstand) {
  for (const char* text : {"", "rank=-1", "rank=1x", "op=all_reduce", "unit=", "units=a", "rank"}) {
    EXPECT_THROW(parse_fault(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace fsdp
