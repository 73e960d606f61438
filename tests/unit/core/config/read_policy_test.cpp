#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "bad_config.hpp"

namespace fsdp {
namespace {

FsdpPolicy policy_of(const std::string& text) {
  return load_run_config_text(tiny_model + "policy: {" + text + "}\n", "run.yaml").policy;
}

TEST(ReadPolicy, Defaults) {
  const FsdpPolicy policy = policy_of("");
  EXPECT_EQ(policy.version, (Version{2, 14}));
  EXPECT_TRUE(std::holds_alternative<WrapBlock>(policy.wrap));
  EXPECT_EQ(policy.reshard_after_forward, Reshard::free());
  EXPECT_EQ(policy.root_reshard, std::nullopt);
  EXPECT_EQ(std::get<int>(policy.forward_prefetch), 0);
  EXPECT_EQ(std::get<int>(policy.backward_prefetch), 1);
  EXPECT_EQ(policy.param_dtype, std::nullopt) << "as in PyTorch: no mixed precision";
  EXPECT_EQ(policy.reduce_dtype, std::nullopt);
  EXPECT_EQ(policy.reduce_scatter_buffers, 1);
  EXPECT_EQ(policy.gradient_divide_factor, std::nullopt);
}

TEST(ReadPolicy, WrapRules) {
  EXPECT_TRUE(std::holds_alternative<WrapNone>(policy_of("wrap: {by: none}").wrap));
  EXPECT_TRUE(std::holds_alternative<WrapTitan>(policy_of("wrap: {by: titan}").wrap));
  EXPECT_EQ(std::get<WrapEvery>(policy_of("wrap: {every: 3}").wrap).blocks, 3);
  EXPECT_EQ(std::get<WrapClass>(policy_of("wrap: {class: [MLP, Block]}").wrap).classes,
            (std::vector<std::string>{"MLP", "Block"}));
  EXPECT_EQ(std::get<WrapGroups>(policy_of("wrap: {groups: [[a.0], [a.1, a.2]]}").wrap).groups,
            (std::vector<std::vector<std::string>>{{"a.0"}, {"a.1", "a.2"}}));
}

TEST(ReadPolicy, EveryOtherValue) {
  const FsdpPolicy policy = policy_of(
      "profile: fsdp2, version: 2.13, reshard_after_forward: 4, root_reshard: true, reshard_units: "
      "{model.norm+lm_head: false, model.layers.0: 2}, param_dtype: f16, reduce_dtype: ~, "
      "reduce_scatter_buffers: 2, gradient_divide_factor: 1.5, activation_checkpointing: none, "
      "prefetch: {forward: {a: [b, c]}, backward: 3}");
  EXPECT_EQ(policy.version, (Version{2, 13}));
  EXPECT_EQ(policy.reshard_after_forward, Reshard{4});
  EXPECT_EQ(policy.root_reshard, true);
  EXPECT_EQ(policy.reshard_units.at("model.norm+lm_head"), Reshard::keep());
  EXPECT_EQ(policy.reshard_units.at("model.layers.0"), Reshard{2});
  EXPECT_EQ(std::get<PrefetchLists>(policy.forward_prefetch), (PrefetchLists{{"a", {"b", "c"}}}));
  EXPECT_EQ(std::get<int>(policy.backward_prefetch), 3);
  EXPECT_EQ(policy.param_dtype, DType::f16);
  EXPECT_EQ(policy.reduce_dtype, std::nullopt);
  EXPECT_EQ(policy.reduce_scatter_buffers, 2);
  EXPECT_EQ(policy.gradient_divide_factor, 1.5);
  EXPECT_EQ(policy_of("version: '2.10'").version, (Version{2, 10}));
  EXPECT_EQ(policy_of("root_reshard: auto").root_reshard, std::nullopt);
  EXPECT_EQ(policy_of("reshard_after_forward: false").reshard_after_forward, Reshard::keep());
}

TEST(ReadPolicy, AnAbsentDtypeStaysUnsetBesideASetOne) {
  EXPECT_EQ(policy_of("param_dtype: bf16").param_dtype, DType::bf16);
  EXPECT_EQ(policy_of("param_dtype: bf16").reduce_dtype, std::nullopt);
  EXPECT_EQ(policy_of("param_dtype: ~, reduce_dtype: f32").param_dtype, std::nullopt);
}

TEST(ReadPolicy, Refusals) {
  const std::string mesh = "mesh: {shard: 8}\n";
  expect_all_refused({
      {"policy: {profile: fsdp3}\n", 1, 19, "policy.profile", "'fsdp3' is not one of fsdp2",
       "did you mean 'fsdp2'?"},
      {"policy: {sharding: full, profile: fsdp1}\n", 1, 35, "policy.profile",
       "'fsdp1' is not supported by this release", "supported: fsdp2"},
      {"policy: {profile: zero3}\n", 1, 19, "policy.profile", "not supported by this release",
       "supported: fsdp2"},
      {"policy: {version: 2.7}\n", 1, 19, "policy.version", "must be between 2.8 and 2.14, is 2.7",
       "2.8"},
      {"policy: {version: 2.15}\n", 1, 19, "policy.version", "between 2.8 and 2.14", "2.14"},
      {"policy: {version: new}\n", 1, 19, "policy.version", "must be a PyTorch release", "'2.14'"},
      {"policy: {version: 2.8.1}\n", 1, 19, "policy.version", "must be a PyTorch release",
       "'2.14'"},
      {"policy: {version: 2.-8}\n", 1, 19, "policy.version", "must be a PyTorch release", "'2.14'"},
      {"policy: {wrap: block}\n", 1, 16, "policy.wrap", "must be a mapping, is 'block'",
       "{by: block}"},
      {"policy: {wrap: {}}\n", 1, 16, "policy.wrap", "must hold exactly one", ""},
      {"policy: {wrap: {by: block, every: 2}}\n", 1, 16, "policy.wrap",
       "must hold exactly one of by, every, class, groups; holds 2", ""},
      {"policy: {wrap: {by: blocks}}\n", 1, 21, "policy.wrap.by", "'blocks' is not one of",
       "did you mean 'block'?"},
      {"policy: {wrap: {by: always}}\n", 1, 21, "policy.wrap.by", "not supported by this release",
       "class"},
      {"policy: {wrap: {size: {min_params: 1}}}\n", 1, 17, "policy.wrap.size",
       "not supported by this release", "remove it"},
      {"policy: {wrap: {every: 0}}\n", 1, 24, "policy.wrap.every", "must be between 1 and 4096",
       ""},
      {"policy: {wrap: {class: [A, A]}}\n", 1, 28, "policy.wrap.class[1]",
       "the class 'A' is listed twice", ""},
      {"policy: {wrap: {groups: [[a], [b, a]]}}\n", 1, 31, "policy.wrap.groups[1]",
       "the module 'a' is in two groups", ""},
      {"policy: {wrap: {groups: [a]}}\n", 1, 26, "policy.wrap.groups[0]", "must be a list",
       "write [a"},
      {"policy: {reshard_after_forward: 1}\n", 1, 33, "policy.reshard_after_forward",
       "must be between 2 and", ""},
      {mesh + "policy: {reshard_after_forward: 3}\n", 2, 33, "policy.reshard_after_forward",
       "must divide the shard group of 8, is 3", ""},
      {mesh + "policy: {reshard_after_forward: 8}\n", 2, 33, "policy.reshard_after_forward",
       "must be smaller than the shard group of 8", "write true"},
      {"policy: {prefetch: {forward: -1}}\n", 1, 30, "policy.prefetch.forward",
       "must be between 0 and 64", ""},
      {"policy: {prefetch: {backward: 0}}\n", 1, 31, "policy.prefetch.backward",
       "must be between 1 and 64", ""},
      {"policy: {prefetch: {forward: {a: b}}}\n", 1, 34, "policy.prefetch.forward.a",
       "must be a list", "write [a"},
      {"policy: {param_dtype: fp16}\n", 1, 23, "policy.param_dtype",
       "'fp16' is not one of f32, bf16, f16", "did you mean 'f16'?"},
      {"policy: {reduce_dtype: u8}\n", 1, 24, "policy.reduce_dtype", "'u8' is not one of", ""},
      {"policy: {version: '2.12', reduce_scatter_buffers: 2}\n", 1, 51,
       "policy.reduce_scatter_buffers", "PyTorch 2.12 has one buffer only", "2.13"},
      {"policy: {gradient_divide_factor: 0}\n", 1, 34, "policy.gradient_divide_factor",
       "must be above 0", ""},
      {"policy: {activation_checkpointing: full}\n", 1, 36, "policy.activation_checkpointing",
       "'full' is not supported by this release", "supported: none"},
      {"policy: {preset: torchtitan}\n", 1, 10, "policy.preset", "not supported by this release",
       "remove it"},
  });
}

}  // namespace
}  // namespace fsdp
