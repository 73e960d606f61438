#include "core/plan/layout.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/units/error.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::inner;
using test::leaf;
using test::model_of;

/// Sizes that PyTorch chooses for one unit.
struct Layout {
  std::int64_t numel;
  std::int64_t shard;
  std::int64_t padded;
  friend bool operator==(const Layout&, const Layout&) = default;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << layout.numel << " as " << layout.padded << ", " << layout.shard << " a rank";
}

Layout layout_of(const WrapPlan& plan, const std::string& name) {
  for (const FsdpUnit& unit : plan.units) {
    if (unit.name == name) {
      return {unit.numel, unit.shard_numel, unit.padded_numel};
    }
  }
  return {};
}

Layout layout_of(const ModelSpec& model, Profile profile, int ranks, const std::string& name,
                 bool use_orig_params = false) {
  FsdpPolicy policy = test::policy_with(WrapBlock{}, profile);
  policy.param_dtype = DType::bf16;
  policy.fsdp1.use_orig_params = use_orig_params;
  return layout_of(test::plan_of(model, policy, ranks), name);
}

TEST(Layout, ABlockOfLlamaThree) {
  const ModelSpec model = test::llama3_8b(1);
  const auto block = [&](int ranks) {
    return layout_of(model, Profile::fsdp2, ranks, "model.layers.0");
  };
  EXPECT_EQ(block(8), (Layout{218'112'000, 27'264'000, 218'112'000}));
  EXPECT_EQ(block(64), (Layout{218'112'000, 3'408'000, 218'112'000}));
  EXPECT_EQ(block(1024), (Layout{218'112'000, 213'000, 218'112'000}));
  EXPECT_EQ(block(24), (Layout{218'112'000, 9'103'702, 218'488'848}));
  EXPECT_EQ(block(48), (Layout{218'112'000, 4'567'212, 219'226'176}));
  EXPECT_EQ(layout_of(model, Profile::fsdp2, 24, "root"),
            (Layout{1'050'677'248, 43'778'219, 1'050'677'256}));
}

TEST(Layout, ABlockOfGpt2InBothProfiles) {
  const ModelSpec model = test::gpt2_small();
  const std::string block = "transformer.h.0";
  EXPECT_EQ(layout_of(model, Profile::fsdp2, 7, block), (Layout{7'087'872, 1'014'421, 7'100'947}));
  for (const bool use_orig_params : {false, true}) {
    EXPECT_EQ(layout_of(model, Profile::fsdp1, 7, block, use_orig_params),
              (Layout{7'087'872, 1'012'554, 7'087'878}));
  }
  EXPECT_EQ(layout_of(model, Profile::fsdp2, 1000, block), (Layout{7'087'872, 9'229, 9'229'000}));
  EXPECT_EQ(layout_of(model, Profile::fsdp1, 1000, block), (Layout{7'087'872, 7'088, 7'088'000}));
}

TEST(Layout, TheRootOfGpt2CountsItsTiedWeightOnce) {
  const ModelSpec model = test::gpt2_small();
  EXPECT_EQ(layout_of(model, Profile::fsdp2, 8, "root"),
            (Layout{39'385'344, 4'923'840, 39'390'720}));
  EXPECT_EQ(layout_of(model, Profile::fsdp1, 8, "root"),
            (Layout{39'385'344, 4'923'168, 39'385'344}));
}

/// The block of Mixtral 8x7B: attention, router, two norms and 8 experts of three matrices.
ModelSpec mixtral_block(bool fused) {
  std::vector<Module> experts;
  const std::int64_t h = 4096;
  const std::int64_t f = 14336;
  if (fused) {
    experts = {leaf("layers.0.w1", "Experts", {8, f, h}), leaf("layers.0.w2", "Experts", {8, h, f}),
               leaf("layers.0.w3", "Experts", {8, f, h})};
  }
  for (int i = 0; i < 8 && !fused; ++i) {
    const std::string path = "layers.0.experts" + std::to_string(i);
    experts.push_back(leaf(path + "a", "Linear", {f, h}));
    experts.push_back(leaf(path + "b", "Linear", {h, f}));
    experts.push_back(leaf(path + "c", "Linear", {f, h}));
  }
  std::vector<Module> parts{
      leaf("layers.0.q", "Linear", {h, h}),    leaf("layers.0.k", "Linear", {1024, h}),
      leaf("layers.0.v", "Linear", {1024, h}), leaf("layers.0.o", "Linear", {h, h}),
      leaf("layers.0.gate", "Linear", {8, h}), leaf("layers.0.norm1", "RMSNorm", {h}),
      leaf("layers.0.norm2", "RMSNorm", {h})};
  parts.insert(parts.end(), experts.begin(), experts.end());
  return model_of(
      inner("", "Top",
            {inner("layers.0", "MixtralBlock", std::move(parts)), leaf("norm", "RMSNorm", {h})}));
}

TEST(Layout, FusedExpertsPadTheirSmallFirstDimension) {
  const auto block = [](bool fused, int ranks) {
    return layout_of(mixtral_block(fused), Profile::fsdp2, ranks, "layers.0");
  };
  EXPECT_EQ(block(true, 8), (Layout{1'451'270'144, 181'408'768, 1'451'270'144}));
  EXPECT_EQ(block(true, 16), (Layout{1'451'270'144, 178'786'816, 2'860'589'056}));
  EXPECT_EQ(block(true, 64), (Layout{1'451'270'144, 176'820'352, 11'316'502'528}));
  EXPECT_EQ(block(false, 64), (Layout{1'451'270'144, 22'679'680, 1'451'499'520}));
}

std::vector<std::string> paths(const FsdpUnit& unit) {
  std::vector<std::string> out;
  for (const UnitParameter& parameter : unit.parameters) {
    out.push_back(parameter.path);
  }
  return out;
}

TEST(Layout, AParentsOwnParametersComeLastInFsdp2AndFirstInFsdp1) {
  Module top = inner("", "Top", {leaf("a", "Linear", {4}), leaf("b", "Linear", {4})});
  top.parameters = {{.name = "scale", .shape = {2}, .tied_to = {}}};
  const ModelSpec model = model_of(std::move(top));
  EXPECT_EQ(paths(test::plan_of(model, test::policy_with(WrapNone{}), 2).units.front()),
            (std::vector<std::string>{"a.weight", "b.weight", "scale"}));
  EXPECT_EQ(
      paths(test::plan_of(model, test::policy_with(WrapNone{}, Profile::fsdp1), 2).units.front()),
      (std::vector<std::string>{"scale", "a.weight", "b.weight"}));
}

TEST(Layout, ANestedUnitTakesItsParametersFromTheOneAround) {
  const ModelSpec model = test::small_llama(1);
  const WrapPlan plan =
      test::plan_of(model, test::policy_with(WrapClass{{"LlamaMLP", "LlamaDecoderLayer"}}), 2);
  EXPECT_EQ(layout_of(plan, "model.layers.0.mlp").numel, 3 * 64 * 160);
  EXPECT_EQ(layout_of(plan, "model.layers.0").numel, 64 * 192 + 2 * 64);
}

TEST(Layout, UnitsWithoutParametersAreLeftOut) {
  const ModelSpec model =
      model_of(inner("", "Top", {inner("empty", "Empty", {}), leaf("a", "Linear", {4})}));
  EXPECT_EQ(test::unit_names(test::plan_of(model, test::policy_with(WrapAlways{}), 2)),
            std::vector<std::string>{"a"});
}

TEST(Layout, TiedWeightsInTwoUnitsAreRefusedSince212AndUntiedBefore) {
  const ModelSpec model = test::gpt2_small();
  FsdpPolicy policy = test::policy_with(WrapGroups{{{"lm_head"}}});
  EXPECT_THROW(test::plan_of(model, policy, 2), UsageError);
  policy.version = {2, 11};
  const WrapPlan untied = test::plan_of(model, policy, 2);
  EXPECT_EQ(layout_of(untied, "lm_head").numel, 50257 * 768);
  EXPECT_EQ(layout_of(untied, "root").numel + 50257 * 768,
            2 * 50257 * 768 + 1024 * 768 + 2 * 768 + 12 * 7'087'872);
}

TEST(Layout, Fsdp1CannotJoinModules) {
  EXPECT_THROW(
      test::plan_of(test::small_llama(2), test::policy_with(WrapEvery{2}, Profile::fsdp1), 2),
      UsageError);
}

TEST(Layout, AListThatWouldOwnParametersIsRefused) {
  const ModelSpec model =
      model_of(inner("", "Top",
                     {inner("layers", "ModuleList", {leaf("layers.0", "Linear", {4})}),
                      leaf("head", "Linear", {4})}));
  for (const Profile profile : {Profile::fsdp1, Profile::fsdp2}) {
    try {
      test::plan_of(model, test::policy_with(WrapGroups{{{"layers"}}}, profile), 2);
      ADD_FAILURE() << "was accepted";
    } catch (const UsageError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("'layers' is a ModuleList"), std::string::npos) << what;
      EXPECT_NE(what.find("wrap its elements"), std::string::npos) << what;
    }
  }
  const FsdpPolicy elements_too = test::policy_with(WrapGroups{{{"layers.0"}, {"layers"}}});
  EXPECT_EQ(test::unit_names(test::plan_of(model, elements_too, 2)),
            (std::vector<std::string>{"root", "layers.0"}))
      << "one without parameters is left out";
}

TEST(Layout, AnInnerModuleBehindTheOneAroundItIsRefused) {
  for (const int minor : {8, 14}) {
    FsdpPolicy policy =
        test::policy_with(WrapGroups{{{"model.layers.0"}, {"lm_head", "model.layers.0.mlp"}}});
    policy.version = {2, minor};
    try {
      test::plan_of(test::small_llama(1), policy, 2);
      ADD_FAILURE() << "was accepted";
    } catch (const UsageError& error) {
      EXPECT_NE(
          std::string(error.what()).find("'model.layers.0.mlp' comes behind 'model.layers.0'"),
          std::string::npos)
          << error.what();
    }
  }
}

TEST(Layout, AModuleInTwoGroupsIsRefused) {
  EXPECT_THROW(test::plan_of(test::small_llama(2),
                             test::policy_with(WrapGroups{{{"lm_head"}, {"lm_head"}}}), 2),
               UsageError);
}

TEST(Layout, AReshardGroupMustDivideTheShardGroup) {
  FsdpPolicy policy = test::policy_with(WrapBlock{});
  policy.reshard_after_forward = {3};
  EXPECT_THROW(test::plan_of(test::small_llama(1), policy, 4), UsageError);
  policy.reshard_after_forward = {2};
  EXPECT_EQ(test::plan_of(test::small_llama(1), policy, 4).units[1].reshard_after_forward,
            Reshard{2});
}

}  // namespace
}  // namespace fsdp
