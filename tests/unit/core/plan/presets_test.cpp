#include "core/plan/presets.hpp"

#include <gtest/gtest.h>

#include "core/units/error.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using Names = std::vector<std::string>;

WrapPlan plan_with(const Preset& preset, const ModelSpec& model, int ranks = 2) {
  FsdpPolicy policy;
  policy.preset = preset;
  return test::plan_of(model, policy, ranks);
}

ModelSpec tied_llama() {
  return llama("tied", {.hidden = 64,
                        .ffn = 160,
                        .layers = 1,
                        .heads = 4,
                        .kv_heads = 2,
                        .vocab = 96,
                        .tied = true});
}

Reshard fate(const WrapPlan& plan, const std::string& unit) {
  for (const FsdpUnit& candidate : plan.units) {
    if (candidate.name == unit) {
      return candidate.reshard_after_forward;
    }
  }
  ADD_FAILURE() << "no unit " << unit;
  return {};
}

// Whole steps are compared with recordings of torchtitan 0.3.0 and accelerate 1.15 in tests/golden.

TEST(Presets, TitanKeepsTheHeadAndDividesByOne) {
  const WrapPlan plan = plan_with(TitanPreset{}, test::small_llama(1));
  EXPECT_EQ(test::unit_names(plan),
            (Names{"model.embed_tokens", "model.layers.0", "model.norm+lm_head"}));
  EXPECT_EQ(fate(plan, "model.norm+lm_head"), Reshard::keep());
  EXPECT_EQ(fate(plan, "model.layers.0"), Reshard::free());
  EXPECT_EQ(plan.policy.gradient_divide_factor, 1.0);
  EXPECT_TRUE(plan.policy.preset) << "reports name it";
}

TEST(Presets, TitanReshardsAllOrNoneWhereTold) {
  const ModelSpec model = test::small_llama(1);
  EXPECT_EQ(fate(plan_with(TitanPreset{TitanReshard::always}, model), "model.norm+lm_head"),
            Reshard::free());
  EXPECT_EQ(fate(plan_with(TitanPreset{TitanReshard::never}, model), "model.layers.0"),
            Reshard::keep());
}

TEST(Presets, TitanPutsTiedWeightsIntoOneKeptUnit) {
  const WrapPlan plan = plan_with(TitanPreset{}, tied_llama());
  EXPECT_EQ(test::unit_names(plan),
            (Names{"model.embed_tokens+model.norm+lm_head", "model.layers.0"}));
  EXPECT_EQ(fate(plan, "model.embed_tokens+model.norm+lm_head"), Reshard::keep());
}

TEST(Presets, TitanCutsExpertsAlongDimensionOneWhereRanksOutnumberThem) {
  const ModelSpec model = test::model_of(test::inner(
      "", "Top",
      {test::inner("layers.0", "MoeBlock", {test::leaf("layers.0.experts", "Experts", {4, 8, 2})}),
       test::leaf("norm", "RMSNorm", {2})}));
  const auto dim = [&](int ranks) {
    return plan_with(TitanPreset{}, model, ranks).units.front().parameters.front().shard_dim;
  };
  EXPECT_EQ(dim(4), 0);
  EXPECT_EQ(dim(8), 1);
}

TEST(Presets, AccelerateWrapsLayersEmbeddingAndTail) {
  const WrapPlan plan = plan_with(AcceleratePreset{}, test::small_llama(2));
  EXPECT_EQ(test::unit_names(plan), (Names{"model.embed_tokens", "model.layers.0", "model.layers.1",
                                           "model.norm+lm_head"}));
  EXPECT_EQ(fate(plan, "model.norm+lm_head"), Reshard::keep());
  EXPECT_EQ(fate(plan, "model.layers.1"), Reshard::free());
  AcceleratePreset kept;
  kept.reshard_after_forward = false;
  EXPECT_EQ(fate(plan_with(kept, test::small_llama(2)), "model.layers.1"), Reshard::keep());
}

TEST(Presets, AccelerateGroupsTiedWeightsNormFirst) {
  EXPECT_EQ(test::unit_names(plan_with(AcceleratePreset{}, tied_llama())).front(),
            "model.norm+model.embed_tokens+lm_head");
}

TEST(Presets, AccelerateWithoutWrapLeavesBlocksToTheRoot) {
  const WrapPlan plan = plan_with(AcceleratePreset{.wrap = AccelerateWrap::none, .classes = {}},
                                  test::small_llama(2));
  EXPECT_EQ(test::unit_names(plan), (Names{"root", "model.embed_tokens", "model.norm+lm_head"}));
}

TEST(Presets, AcceleratesSizeRuleTakesNoLists) {
  // Everything above 10,000 elements, lists excepted: attention and MLP, their layers, the model.
  const AcceleratePreset preset{.wrap = AccelerateWrap::size, .classes = {}, .min_params = 10'000};
  const Names names = test::unit_names(plan_with(preset, test::small_llama(1)));
  EXPECT_EQ(std::count(names.begin(), names.end(), "model.layers"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "model.layers.0.mlp.up_proj"), 1);
}

TEST(Presets, TorchtuneKeepsTheRootAndShardsWhatItIsTold) {
  const WrapPlan plan = plan_with(TorchtunePreset{{"lm_head"}}, test::small_llama(1));
  EXPECT_EQ(test::unit_names(plan), (Names{"root", "model.layers.0", "lm_head"}));
  EXPECT_EQ(fate(plan, "root"), Reshard::keep());
  EXPECT_THROW(plan_with(TorchtunePreset{{"output"}}, test::small_llama(1)), UsageError);
}

TEST(Presets, TorchtuneShardsALayerThatIsABlockOnce) {
  const ModelSpec model = test::model_of(
      test::inner("", "Top",
                  {test::inner("first", "MyBlock", {test::leaf("first.a", "Linear", {4, 4})}),
                   test::leaf("output", "Linear", {4, 4})}));
  EXPECT_EQ(test::unit_names(plan_with(TorchtunePreset{{"first", "output"}}, model)),
            (Names{"first", "output"}));
}

TEST(Presets, ModelsWithoutNormAndHeadHaveNoTail) {
  const ModelSpec no_weights = test::model_of(
      test::inner("", "Top",
                  {test::inner("first", "MyBlock", {test::leaf("first.a", "Linear", {4, 4})}),
                   test::inner("norm", "LayerNorm", {})}));
  for (const Preset& preset : std::vector<Preset>{TitanPreset{}, AcceleratePreset{}}) {
    EXPECT_EQ(test::unit_names(plan_with(preset, no_weights)), Names{"first"});
  }
  ModelSpec no_norm = no_weights;
  no_norm.root.children.pop_back();
  no_norm.calls.pop_back();
  EXPECT_EQ(test::unit_names(plan_with(TitanPreset{}, no_norm)), Names{"first"});
}

TEST(Presets, AccelerateAsksForTheClassOfLayersItCannotTell) {
  const ModelSpec model =
      test::model_of(test::inner("", "Top", {test::leaf("a", "Linear", {4, 4})}));
  try {
    plan_with(AcceleratePreset{}, model);
    ADD_FAILURE() << "was accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("fsdp_transformer_layer_cls_to_wrap"),
              std::string::npos)
        << error.what();
  }
}

TEST(Presets, NoneLeavesThePolicyAlone) {
  FsdpPolicy policy = test::policy_with(WrapEvery{2});
  policy.gradient_divide_factor = 3;
  const FsdpPolicy out = apply_preset(test::small_llama(2), policy, {});
  EXPECT_EQ(std::get<WrapEvery>(out.wrap).blocks, 2);
  EXPECT_EQ(out.gradient_divide_factor, 3);
}

}  // namespace
}  // namespace fsdp
