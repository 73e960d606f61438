#include "core/model/model_spec.hpp"

#include <gtest/gtest.h>

#include "core/model/families.hpp"

namespace fsdp {
namespace {

TEST(IsWithin, ComparesWholeComponents) {
  EXPECT_TRUE(is_within("model.layers.1", ""));
  EXPECT_TRUE(is_within("model.layers.1", "model.layers.1"));
  EXPECT_TRUE(is_within("model.layers.1.mlp", "model.layers.1"));
  EXPECT_FALSE(is_within("model.layers.10", "model.layers.1"));
  EXPECT_FALSE(is_within("model", "model.layers"));
}

TEST(JoinPath, LeavesTheRootOut) {
  EXPECT_EQ(join_path("", "weight"), "weight");
  EXPECT_EQ(join_path("model.norm", "weight"), "model.norm.weight");
}

TEST(FindModule, FollowsPaths) {
  const ModelSpec model = llama(
      "m",
      {.hidden = 8, .ffn = 8, .layers = 12, .heads = 2, .kv_heads = 2, .vocab = 8, .tied = false});
  ASSERT_NE(find_module(model.root, "model.layers.11.mlp"), nullptr);
  EXPECT_EQ(find_module(model.root, "model.layers.11.mlp")->path, "model.layers.11.mlp");
  EXPECT_EQ(find_module(model.root, "")->path, "");
  EXPECT_EQ(find_module(model.root, "model.layers.12"), nullptr);
  EXPECT_EQ(find_module(model.root, "model.layers.1.mlp.none"), nullptr);
}

TEST(BlockPaths, AreTheOutermostBlocksInOrder) {
  ModelSpec model;
  model.root = {.path = "", .class_name = "Net", .parameters = {}, .children = {}, .attention = {}};
  Module outer{
      .path = "a", .class_name = "T5Block", .parameters = {}, .children = {}, .attention = {}};
  outer.children.push_back({.path = "a.b",
                            .class_name = "InnerBlock",
                            .parameters = {},
                            .children = {},
                            .attention = {}});
  model.root.children = {
      outer,
      {.path = "c",
       .class_name = "LlamaDecoderLayer",
       .parameters = {},
       .children = {},
       .attention = {}},
      {.path = "v", .class_name = "ViTLayer", .parameters = {}, .children = {}, .attention = {}},
      {.path = "d", .class_name = "Blocks", .parameters = {}, .children = {}, .attention = {}}};
  EXPECT_EQ(block_paths(model), (std::vector<std::string>{"a", "c", "v"}));
}

TEST(HasTies, SeesThemAnywhereInTheTree) {
  EXPECT_FALSE(has_ties(llama("m", {.layers = 1, .tied = false})));
  EXPECT_TRUE(has_ties(llama("m", {.layers = 1, .tied = true})));
}

TEST(FindModule, DoesNotTrustTheNumberInAName) {
  ModelSpec model;
  model.root = {.path = "", .class_name = "Net", .parameters = {}, .children = {}, .attention = {}};
  for (const char* name : {"3", "0", "1"}) {
    model.root.children.push_back(
        {.path = name, .class_name = "N", .parameters = {}, .children = {}, .attention = {}});
  }
  for (const char* name : {"3", "0", "1"}) {
    ASSERT_NE(find_module(model.root, name), nullptr) << name;
    EXPECT_EQ(find_module(model.root, name)->path, name);
  }
  EXPECT_EQ(find_module(model.root, "2"), nullptr);
}

TEST(ParameterTotal, CountsATiedWeightOnce) {
  const auto total = [](bool tied) {
    return parameter_total(llama("m", {.hidden = 8,
                                       .ffn = 8,
                                       .layers = 1,
                                       .heads = 2,
                                       .kv_heads = 2,
                                       .vocab = 10,
                                       .tied = tied}));
  };
  EXPECT_EQ(total(false) - total(true), 80);
}

}  // namespace
}  // namespace fsdp
