#include "core/config/run_config.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fsdp {
namespace {

const std::string source_dir = FSDP_SOURCE_DIR;

TEST(RunConfig, QuickstartIsWhatItsCommentsSay) {
  const RunConfig config = load_run_config(source_dir + "/configs/runs/quickstart.yaml");
  EXPECT_EQ(config.file, source_dir + "/configs/runs/quickstart.yaml");
  EXPECT_EQ(config.model.name, "gpt2-124m");
  EXPECT_EQ(config.model.scaling, "vocab 50257 -> 5024");
  EXPECT_EQ(block_paths(config.model).size(), 12U);
  EXPECT_EQ(config.batch.tokens(), 128);
  EXPECT_EQ(config.mesh.has_value(), false);
  EXPECT_EQ(config.space.unit_sizes, (std::vector<int>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(config.space.forward_prefetch, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(config.space.backward_prefetch, (std::vector<int>{1, 2}));
  EXPECT_EQ(config.memory_limit, Bytes{std::int64_t{4} << 30});
  EXPECT_EQ(config.measure.stop.max_error, 0.03);
  EXPECT_EQ(config.measure.stop.max_time, Nanoseconds{10'000'000'000});
  EXPECT_EQ(config.tune.budget, Nanoseconds{75'000'000'000});
  EXPECT_EQ(config.tune.survivors, 6);
}

TEST(RunConfig, PlanExampleIsOn64Ranks) {
  const RunConfig config = load_run_config(source_dir + "/configs/runs/plan-llama3-8b.yaml");
  EXPECT_EQ(config.mesh->world(), 64);
  EXPECT_EQ(parameter_total(config.model), 8'030'261'248);
  EXPECT_TRUE(std::holds_alternative<WrapTitan>(config.policy.wrap));
}

TEST(RunConfig, OnlyTheModelIsRequired) {
  const RunConfig config =
      load_run_config_text("model: configs/models/gpt2-124m.yaml\n", source_dir + "/run.yaml");
  EXPECT_EQ(config.cluster.has_value(), false);
  EXPECT_EQ(config.mesh.has_value(), false);
  EXPECT_EQ(config.memory_limit, std::nullopt);
  EXPECT_EQ(config.output, "results/runs");
  EXPECT_EQ(config.measure.backend, BackendChoice::automatic);
}

}  // namespace
}  // namespace fsdp
