#include "tuner/report/text_report.hpp"

#include <gtest/gtest.h>

#include "tests/support/schedules.hpp"
#include "tests/unit/tuner/trials.hpp"
#include "tuner/report/text_table.hpp"

namespace fsdp {
namespace {

using test::measure;
using test::samples;
using test::trial;

RunConfig config() {
  RunConfig result;
  result.model = test::small_llama(2);
  result.model.scaling = "vocab 32000 -> 96";
  return result;
}

RunSummary measured_summary() {
  RunSummary summary;
  summary.command = "tune";
  summary.mesh = {.replicate = 1, .shard = 2};
  summary.capabilities.backend = "mpi";
  summary.capabilities.measures = true;
  summary.capabilities.compute = "oneDNN";
  summary.environment.hosts = {"node1", "node2"};
  summary.environment.cpu = "a processor";
  summary.enumerated = 9;
  summary.duplicates = 4;
  summary.trials = {trial({.label = "D", .predicted_ns = 90e6, .is_default = true}),
                    trial({.label = "A", .predicted_ns = 80e6, .unit_blocks = 3}),
                    trial({.label = "P", .predicted_ns = 200e6, .unit_blocks = 5})};
  const auto in_ms = [](double median) {
    auto values = samples(median);
    for (double& value : values) {
      value *= 1e6;
    }
    return values;
  };
  measure(summary.trials[0], in_ms(100));
  measure(summary.trials[1], in_ms(80), in_ms(100));
  summary.trials[2].dropped = "pruned by simulation";
  summary.decision = decide(summary.trials, 0.01);
  return summary;
}

void expect_in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "'" << part << "' is not (in its place) in\n" << text;
    at = found + part.size();
  }
}

TEST(TuneText, SaysWhatToDoBeforeTheFigures) {
  const std::string text = tune_text(measured_summary(), config());
  expect_in_order(
      text, {"small (vocab 32000 -> 96)", "shard 2 x replicate 1",
             "measured on 2 ranks, node1, node2 (a processor), backend mpi",
             "A is 20.0 % [20.0, 20.0] faster than the default (D)", "measured ms",
             "a unit every 3 blocks", "80.00 [78.00, 82.00]", "-20.0 [-20.0, -20.0]", "faster",
             "100.0 [98.00, 102.0]", "default",
             "9 policies looked at, 4 of them the same step as another; 1 pruned by "
             "simulation",
             "8 interleaved samples a plan, contents verified 1 time; stopped: sample cap",
             "predictions are off by 5.0 % on average"});
  EXPECT_EQ(text.find("simulated"), std::string::npos);
}

TEST(TuneText, ASimulationIsNeverCalledAMeasurement) {
  RunSummary summary = measured_summary();
  summary.capabilities.measures = false;
  summary.capabilities.backend = "sim";
  for (Trial& each : summary.trials) {
    each.measured.reset();
  }
  summary.decision = decide(summary.trials, 0.01);
  const std::string text = tune_text(summary, config());
  expect_in_order(text,
                  {"simulated: not a measurement", "simulated, not measured: A is predicted"});
  EXPECT_EQ(text.find("measured ms"), std::string::npos);
  EXPECT_EQ(text.find("measured on"), std::string::npos);
}

TEST(ToRecord, HoldsWhatTheTextSays) {
  const RunSummary summary = measured_summary();
  const RunRecord record = to_record(summary, config());
  EXPECT_EQ(record.provenance, "measured");
  EXPECT_EQ(record.winner_index, 1);
  EXPECT_EQ(record.default_index, 0);
  EXPECT_EQ(record.verdict, summary.decision.sentence);
  EXPECT_EQ(record.scaling, "vocab 32000 -> 96");
  ASSERT_EQ(record.candidates.size(), 3U);
  EXPECT_EQ(record.candidates[1].against_default->verdict, "faster");
  EXPECT_EQ(record.candidates[1].measurement->summary.median, 80e6);
  EXPECT_EQ(record.candidates[2].outcome, "pruned by simulation");
  EXPECT_EQ(record.candidates[2].predicted_ns, 200e6);
  EXPECT_FALSE(record.candidates[2].measurement);
}

TEST(PredictionError, NeedsBothFigures) {
  EXPECT_DOUBLE_EQ(*prediction_error(measured_summary().trials), 0.05);
  EXPECT_FALSE(prediction_error({trial({.label = "A", .predicted_ns = 1})}));
}

TEST(TextTable, AlignsAndLeavesNoBlanksAtTheEnd) {
  TextTable table({{"name", TextTable::Align::left},
                   {"n", TextTable::Align::right},
                   {"note", TextTable::Align::left}});
  table.add({"a", "10", "x"});
  table.add({"longer", "9", ""});
  EXPECT_EQ(table.text(), "name     n  note\na       10  x\nlonger   9\n");
  EXPECT_THROW(table.add({"one"}), ContractViolation);
}

}  // namespace
}  // namespace fsdp
