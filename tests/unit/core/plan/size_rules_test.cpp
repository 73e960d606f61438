#include "core/plan/size_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/config/run_config.hpp"
#include "tests/support/plans.hpp"

namespace fsdp {
namespace {

using test::inner;
using test::leaf;
using test::model_of;

/// How many units there are of each size.
std::map<std::int64_t, int> sizes(const ModelSpec& model, std::int64_t min_params) {
  std::map<std::int64_t, int> out;
  const WrapPlan plan = test::plan_of(
      model, test::policy_with(WrapSize{.min_params = min_params}, Profile::fsdp1), 8);
  for (const FsdpUnit& unit : plan.units) {
    ++out[unit.numel];
  }
  return out;
}

std::int64_t size_of(const ModelSpec& model, std::int64_t min_params, const std::string& name) {
  const WrapPlan plan = test::plan_of(
      model, test::policy_with(WrapSize{.min_params = min_params}, Profile::fsdp1), 8);
  for (const FsdpUnit& unit : plan.units) {
    if (unit.name == name) {
      return unit.numel;
    }
  }
  return -1;
}

using Sizes = std::map<std::int64_t, int>;

TEST(SizeRule, LlamaTwo7bByThreshold) {
  const ModelSpec model = test::llama2_7b();
  // Embedding and head, q k v o, gate up down, and the norms in the root.
  EXPECT_EQ(sizes(model, 1'000'000),
            (Sizes{{131'072'000, 2}, {16'777'216, 128}, {45'088'768, 96}, {266'240, 1}}));
  // Attention as a whole, each matrix of the MLP.
  EXPECT_EQ(sizes(model, 20'000'000),
            (Sizes{{131'072'000, 2}, {67'108'864, 32}, {45'088'768, 96}, {266'240, 1}}));
  EXPECT_EQ(sizes(model, 200'000'000), (Sizes{{202'383'360, 32}, {262'148'096, 1}}));
  EXPECT_EQ(sizes(model, 1'000'000'000), (Sizes{{6'607'343'616, 1}, {131'072'000, 1}}));
}

TEST(SizeRule, TheDefaultLeavesLlamaTwo7bAGiantUnitOfAllAttention) {
  const ModelSpec model = test::llama2_7b();
  EXPECT_EQ(sizes(model, 100'000'000),
            (Sizes{{131'072'000, 2}, {135'266'304, 32}, {2'147'749'888, 1}}));
  EXPECT_EQ(size_of(model, 100'000'000, "model"), 2'147'749'888);
}

TEST(SizeRule, TheShippedLlamaTwo7bHasTheGiantUnitToo) {
  const RunConfig config = load_run_config_text(
      "model: configs/models/llama2-7b.yaml\npolicy: {profile: fsdp1, wrap: {size: {}}}\n",
      std::string(FSDP_SOURCE_DIR) + "/run.yaml");
  const WrapPlan plan = test::plan_of(config.model, config.policy, 8);
  EXPECT_EQ(plan.units.size(), 35U) << "embedding, 32 MLPs, model, head; the root has none left";
  EXPECT_EQ(plan.units.front().name, "model");
  EXPECT_EQ(plan.units.front().numel, 2'147'749'888);
}

TEST(SizeRule, LlamaThreeAtTheDefault) {
  const ModelSpec model = test::llama3_8b(32);
  EXPECT_EQ(sizes(model, 100'000'000),
            (Sizes{{525'336'576, 2}, {176'160'768, 32}, {1'342'443'520, 1}}));
  const ModelSpec seventy = llama("70b", {.hidden = 8192,
                                          .ffn = 28672,
                                          .layers = 80,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .vocab = 128256,
                                          .tied = false});
  EXPECT_EQ(sizes(seventy, 100'000'000),
            (Sizes{{1'050'673'152, 2}, {150'994'944, 80}, {234'881'024, 240}, {1'318'912, 1}}));
}

TEST(SizeRule, Gpt2XlWrapsItsTiedHeadAsWell) {
  const ModelSpec model = gpt2("xl", {.hidden = 1600, .layers = 48, .heads = 25});
  EXPECT_EQ(sizes(model, 30'000'000), (Sizes{{80'411'200, 2}, {30'740'800, 48}, {1'641'600, 1}}));
  EXPECT_EQ(size_of(model, 100'000'000, "transformer"), 1'557'611'200);
}

TEST(SizeRule, AListPassesItsRemainderToTheModuleAboveIt) {
  const ModelSpec model = model_of(inner("", "Top",
                                         {inner("body", "Body",
                                                {inner("body.layers", "ModuleList",
                                                       {leaf("body.layers.0", "Linear", {10}),
                                                        leaf("body.layers.1", "Linear", {10})})}),
                                          leaf("head", "Linear", {5})}));
  EXPECT_EQ(size_groups(model, {.min_params = 15}), (ModuleGroups{{"body"}}));
  EXPECT_EQ(size_groups(model, {.min_params = 10}),
            (ModuleGroups{{"body.layers.0"}, {"body.layers.1"}}));
  EXPECT_EQ(size_groups(model, {.min_params = 15, .force_leaf = {}, .exclude = {}}),
            (ModuleGroups{{"body.layers"}}));
}

TEST(SizeRule, AForcedLeafIsNeitherEnteredNorWrapped) {
  // _recursive_wrap wraps a module only behind its children, which it does not visit here.
  const ModelSpec model =
      model_of(inner("", "Top",
                     {inner("block", "Block",
                            {inner("block.attention", "MultiheadAttention",
                                   {leaf("block.attention.a", "Linear", {10}),
                                    leaf("block.attention.b", "Linear", {10})})}),
                      leaf("head", "Linear", {5})}));
  EXPECT_EQ(size_groups(model, {.min_params = 8}), (ModuleGroups{{"block"}}));
  EXPECT_EQ(size_groups(model, {.min_params = 8, .force_leaf = {}}),
            (ModuleGroups{{"block.attention.a"}, {"block.attention.b"}}));
}

TEST(TotalSizeRule, CountsWrappedChildrenAndNeedsMoreThanTheThreshold) {
  const ModelSpec model = model_of(inner(
      "", "Top",
      {inner("body", "Body", {leaf("body.a", "Linear", {10}), leaf("body.b", "Linear", {11})})}));
  EXPECT_EQ(total_size_groups(model, {.min_params = 10}), (ModuleGroups{{"body.b"}, {"body"}}));
  EXPECT_EQ(total_size_groups(model, {.min_params = 21}), ModuleGroups{});
}

}  // namespace
}  // namespace fsdp
