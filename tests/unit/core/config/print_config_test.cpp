#include <gtest/gtest.h>

#include <random>
#include <string>

#include "bad_config.hpp"
#include "core/model/module_tree.hpp"

namespace fsdp {
namespace {

const std::string source_dir = FSDP_SOURCE_DIR;

/// Everything printed and, because a printer could leave a key out, everything else that a run
/// depends on.
void expect_reads_back(const RunConfig& config) {
  const std::string text = print_config(config);
  SCOPED_TRACE(text);
  const RunConfig read = load_run_config_text(text, config.file);
  EXPECT_EQ(print_config(read), text);
  EXPECT_EQ(write_module_tree(read.model), write_module_tree(config.model));
  EXPECT_EQ(read.cluster.has_value(), config.cluster.has_value());
  EXPECT_EQ(read.mesh.has_value(), config.mesh.has_value());
  EXPECT_EQ(read.policy.wrap.index(), config.policy.wrap.index());
  EXPECT_EQ(read.policy.version, config.policy.version);
  EXPECT_EQ(read.policy.reshard_after_forward, config.policy.reshard_after_forward);
  EXPECT_EQ(read.policy.root_reshard, config.policy.root_reshard);
  EXPECT_EQ(read.policy.reshard_units, config.policy.reshard_units);
  EXPECT_EQ(read.policy.forward_prefetch, config.policy.forward_prefetch);
  EXPECT_EQ(read.policy.backward_prefetch, config.policy.backward_prefetch);
  EXPECT_EQ(read.policy.param_dtype, config.policy.param_dtype);
  EXPECT_EQ(read.policy.reduce_dtype, config.policy.reduce_dtype);
  EXPECT_EQ(read.policy.reduce_scatter_buffers, config.policy.reduce_scatter_buffers);
  EXPECT_EQ(read.policy.gradient_divide_factor, config.policy.gradient_divide_factor);
  EXPECT_EQ(read.space.unit_sizes, config.space.unit_sizes);
  EXPECT_EQ(read.space.reshard, config.space.reshard);
  EXPECT_EQ(read.memory_limit, config.memory_limit);
  EXPECT_EQ(read.measure.stop.max_error, config.measure.stop.max_error);
  EXPECT_EQ(read.measure.stop.max_time, config.measure.stop.max_time);
  EXPECT_EQ(read.measure.seed, config.measure.seed);
  EXPECT_EQ(read.tune.budget, config.tune.budget);
  EXPECT_EQ(read.tune.indifference, config.tune.indifference);
  EXPECT_EQ(read.output, config.output);
}

TEST(PrintConfig, DefaultsReadBack) {
  expect_reads_back(load_run_config_text(tiny_model, "run.yaml"));
}

TEST(PrintConfig, ShippedRunsReadBack) {
  for (const char* name : {"quickstart", "plan-llama3-8b"}) {
    expect_reads_back(load_run_config(source_dir + "/configs/runs/" + name + ".yaml"));
  }
}

TEST(PrintConfig, ClusterIsWrittenOut) {
  const RunConfig config = load_run_config_text(
      tiny_model + "cluster: clusters/illustrative-8.yaml\n", source_dir + "/configs/runs/x.yaml");
  EXPECT_NE(print_config(config).find("  origin: \"illustrative, not measured\""),
            std::string::npos);
  expect_reads_back(config);
}

TEST(PrintConfig, EveryUnusualPolicyValueReadsBack) {
  for (const char* policy :
       {"wrap: {by: none}", "wrap: {by: titan}", "wrap: {every: 3}", "wrap: {class: [MLP, 'a b']}",
        "wrap: {groups: [[a.0], [a.1, a.2]]}", "prefetch: {forward: {a: [b, c], 'd e': [f]}}",
        "prefetch: {backward: {a+b: [c]}}", "prefetch: {forward: {}, backward: 7}",
        "reshard_after_forward: 4", "reshard_after_forward: false, root_reshard: true",
        "root_reshard: false", "reshard_units: {a+b: false, c: 2, 'x: y': true}",
        "param_dtype: ~, reduce_dtype: ~", "param_dtype: f16, reduce_dtype: bf16",
        "gradient_divide_factor: 0.1, reduce_scatter_buffers: 3", "version: '2.8'"}) {
    expect_reads_back(load_run_config_text(tiny_model + "policy: {" + policy + "}\n", "run.yaml"));
  }
}

TEST(PrintConfig, RandomSettingsReadBack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    RunConfig config = load_run_config_text(tiny_model, "run.yaml");
    const auto draw = [&random](std::uint64_t most) {
      return static_cast<int>(1 + random() % most);
    };
    config.mesh = DeviceMesh{.replicate = draw(8), .shard = draw(64)};
    config.batch = {.sequence = draw(9999), .micro_batch = draw(9), .accumulate = draw(9)};
    config.space.unit_sizes = {draw(10), 10 + draw(10)};
    config.space.reshard = {Reshard::keep()};
    config.memory_limit = Bytes{static_cast<std::int64_t>(random() >> 20) + 1};
    config.measure.stop.max_error = static_cast<double>(draw(10000)) / 100.0 / 100.0;
    config.measure.stop.max_time = Nanoseconds{static_cast<std::int64_t>(random() >> 20) + 1};
    config.measure.seed = random() >> 1;
    config.tune.indifference = static_cast<double>(draw(9999)) / 1000.0 / 100.0;
    expect_reads_back(config);
  }
}

TEST(PrintConfig, ScaledModelIsWrittenWithItsOrigin) {
  const RunConfig config = load_run_config_text(
      "model: {file: models/llama3.2-1b.yaml, scale: {vocab: 1000, layers: 2}}\n",
      source_dir + "/configs/runs/x.yaml");
  EXPECT_NE(print_config(config).find("  vocab: 128256\n"), std::string::npos);
  EXPECT_NE(print_config(config).find("  scale: {vocab: 1000, layers: 2}\n"), std::string::npos);
  expect_reads_back(config);
}

}  // namespace
}  // namespace fsdp
