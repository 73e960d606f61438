#include "core/plan/wrap_rules.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/units/error.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using Groups = ModuleGroups;

const ModelSpec& model() {
  static const ModelSpec small = test::small_llama(3);
  return small;
}

std::string refusal(const WrapRule& rule, const ModelSpec& of = model()) {
  try {
    module_groups(of, rule);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' has no " << part;
}

TEST(WrapRules, ByBlocks) {
  EXPECT_EQ(module_groups(model(), WrapNone{}), Groups{});
  EXPECT_EQ(module_groups(model(), WrapBlock{}),
            (Groups{{"model.layers.0"}, {"model.layers.1"}, {"model.layers.2"}}));
  EXPECT_EQ(module_groups(model(), WrapEvery{2}),
            (Groups{{"model.layers.0", "model.layers.1"}, {"model.layers.2"}}));
  EXPECT_EQ(module_groups(model(), WrapPartition{{1, 2}}),
            (Groups{{"model.layers.0"}, {"model.layers.1", "model.layers.2"}}));
}

TEST(WrapRules, SubBlockTakesTheChildrenThatHoldAMatrix) {
  EXPECT_EQ(module_groups(test::small_llama(1), WrapSubBlock{}),
            (Groups{{"model.layers.0.self_attn"}, {"model.layers.0.mlp"}}));
}

/// T5 keeps the parts of a block in a list.
ModelSpec parts_in_a_list() {
  return test::model_of(
      test::inner("", "Top",
                  {test::inner("b", "MyBlock",
                               {test::inner("b.layer", "ModuleList",
                                            {test::leaf("b.layer.0", "Attention", {4, 4}),
                                             test::leaf("b.layer.1", "MLP", {4, 4})}),
                                test::leaf("b.norm", "RMSNorm", {4})})}));
}

TEST(WrapRules, AListIsNeverAUnitForItsForwardNeverRuns) {
  const ModelSpec tree = parts_in_a_list();
  EXPECT_EQ(module_groups(tree, WrapSubBlock{}), (Groups{{"b.layer.0"}, {"b.layer.1"}}));
  EXPECT_EQ(module_groups(tree, WrapAlways{}),
            (Groups{{"b.layer.0"}, {"b.layer.1"}, {"b.norm"}, {"b"}}));
}

TEST(WrapRules, TitanSplitsWhatStandsOutsideTheBlocks) {
  EXPECT_EQ(module_groups(test::small_llama(1), WrapTitan{}),
            (Groups{{"model.layers.0"}, {"model.embed_tokens"}, {"model.norm", "lm_head"}}));
  EXPECT_EQ(module_groups(gpt2("g", {.hidden = 8, .layers = 1, .heads = 2}), WrapTitan{}),
            (Groups{{"transformer.h.0"},
                    {"transformer.wte", "transformer.wpe", "transformer.ln_f", "lm_head"}}))
      << "tied weights must stand in one unit";
}

TEST(WrapRules, ByClassChildrenBeforeParents) {
  EXPECT_EQ(module_groups(test::small_llama(1), WrapClass{{"LlamaDecoderLayer", "LlamaMLP"}}),
            (Groups{{"model.layers.0.mlp"}, {"model.layers.0"}}));
}

TEST(WrapRules, ByNameMatchesTheWholePath) {
  EXPECT_EQ(module_groups(model(), WrapName{R"(model\.layers\.[02])"}),
            (Groups{{"model.layers.0"}, {"model.layers.2"}}));
  expect_in("matches 'layers' as a whole", refusal(WrapName{"layers"}));
}

TEST(WrapRules, AlwaysTakesEveryModuleButTheRoot) {
  const ModelSpec tree = test::model_of(test::inner(
      "", "Top",
      {test::inner("a", "A", {test::leaf("a.b", "Linear", {2})}), test::leaf("c", "C", {1})}));
  EXPECT_EQ(module_groups(tree, WrapAlways{}), (Groups{{"a.b"}, {"a"}, {"c"}}));
}

TEST(WrapRules, GroupsAreTakenAsTheyAre) {
  EXPECT_EQ(module_groups(model(), WrapGroups{{{"lm_head", "model.norm"}}}),
            (Groups{{"lm_head", "model.norm"}}));
}

TEST(WrapRules, RefusalsNameTheRuleAndWhatIsMissing) {
  expect_in("policy.wrap.every", refusal(WrapEvery{0}));
  expect_in("leaves out 1 of the 3 blocks", refusal(WrapPartition{{1, 1}}));
  expect_in("add up to the 3 blocks", refusal(WrapPartition{{2, 2}}));
  expect_in("no module of small has class Nothing", refusal(WrapClass{{"Nothing"}}));
  expect_in("has no module 'model.layers.9'", refusal(WrapGroups{{{"model.layers.9"}}}));
  expect_in("has no module ''", refusal(WrapGroups{{{""}}}));
  expect_in("is not a regular expression", refusal(WrapName{"("}));
  const ModelSpec no_blocks =
      test::model_of(test::inner("", "Top", {test::leaf("a", "Linear", {2})}));
  for (const WrapRule& rule :
       std::vector<WrapRule>{WrapBlock{}, WrapSubBlock{}, WrapTitan{}, WrapPartition{{1}}}) {
    expect_in("name the classes with wrap: {class", refusal(rule, no_blocks));
  }
}

}  // namespace
}  // namespace fsdp
