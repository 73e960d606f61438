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

TEST(ReadPolicy, WhatOnlyFsdp2Knows) {
  const FsdpPolicy policy = policy_of(
      "separate_reduce_scatter_group: true, force_sum_reduction: true, keep_sharded_in_backward: "
      "[embed], shard_dims: {'a\\.w': 1, b: 0}, ignored_params: ['.*lora.*'], fp8_gather_classes: "
      "[Linear], activation_checkpointing: selective, cpu_offload: true");
  EXPECT_TRUE(policy.separate_reduce_scatter_group);
  EXPECT_TRUE(policy.force_sum_reduction);
  EXPECT_EQ(policy.keep_sharded_in_backward, std::vector<std::string>{"embed"});
  EXPECT_EQ(policy.shard_dims, (std::vector<std::pair<std::string, int>>{{"a\\.w", 1}, {"b", 0}}))
      << "in the order of the file: the first match counts";
  EXPECT_EQ(policy.ignored_params, std::vector<std::string>{".*lora.*"});
  EXPECT_EQ(policy.fp8_gather_classes, std::vector<std::string>{"Linear"});
  EXPECT_EQ(policy.activation_checkpointing, Checkpointing::selective);
  EXPECT_TRUE(policy.cpu_offload);
}

TEST(ReadPolicy, WhatOnlyFsdp1Knows) {
  const FsdpPolicy defaults = policy_of("profile: fsdp1, version: 2.5");
  EXPECT_EQ(defaults.version, (Version{2, 5}));
  EXPECT_EQ(defaults.fsdp1.sharding, ShardingStrategy::full_shard);
  EXPECT_EQ(defaults.fsdp1.backward_prefetch, BackwardPrefetch::pre);
  EXPECT_FALSE(defaults.fsdp1.forward_prefetch);
  EXPECT_TRUE(defaults.fsdp1.limit_all_gathers);
  EXPECT_FALSE(defaults.fsdp1.use_orig_params);
  const FsdpPolicy other = policy_of(
      "profile: fsdp1, sharding: hybrid_shard_zero2, backward_prefetch: post, forward_prefetch: "
      "true, limit_all_gathers: false, use_orig_params: true");
  EXPECT_EQ(other.fsdp1.sharding, ShardingStrategy::hybrid_shard_zero2);
  EXPECT_EQ(other.fsdp1.backward_prefetch, BackwardPrefetch::post);
  EXPECT_TRUE(other.fsdp1.forward_prefetch);
  EXPECT_FALSE(other.fsdp1.limit_all_gathers);
  EXPECT_TRUE(other.fsdp1.use_orig_params);
  EXPECT_EQ(policy_of("profile: fsdp1, backward_prefetch: ~").fsdp1.backward_prefetch,
            BackwardPrefetch::none);
}

TEST(ReadPolicy, AReshardToEveryRankIsOneThatFreesAndToOneKeeps) {
  EXPECT_EQ(policy_of("reshard_after_forward: 1").reshard_after_forward, Reshard::keep());
}

TEST(ReadPolicy, AnAbsentDtypeStaysUnsetBesideASetOne) {
  EXPECT_EQ(policy_of("param_dtype: bf16").param_dtype, DType::bf16);
  EXPECT_EQ(policy_of("param_dtype: bf16").reduce_dtype, std::nullopt);
  EXPECT_EQ(policy_of("param_dtype: ~, reduce_dtype: f32").param_dtype, std::nullopt);
}

TEST(ReadPolicy, Refusals) {
  const std::string mesh = "mesh: {shard: 8}\n";
  expect_all_refused({
      {"policy: {profile: fsdp3}\n", 1, 19, "policy.profile", "'fsdp3' is not one of fsdp1, fsdp2",
       "did you mean 'fsdp1'?"},
      {"policy: {sharding: full, profile: fsdp1}\n", 1, 20, "policy.sharding",
       "'full' is not one of full_shard, shard_grad_op", ""},
      {"policy: {sharding: full_shard}\n", 1, 20, "policy.sharding", "belongs to profile fsdp1",
       "remove it, or set profile: fsdp1"},
      {"policy: {profile: fsdp1, reduce_scatter_buffers: 2}\n", 1, 50,
       "policy.reduce_scatter_buffers", "belongs to profile fsdp2", "set profile: fsdp2"},
      {"policy: {profile: zero3}\n", 1, 19, "policy.profile", "not supported by this release",
       "supported: fsdp1, fsdp2"},
      {"policy: {version: 2.7}\n", 1, 19, "policy.version", "must be between 2.8 and 2.15, is 2.7",
       "2.8"},
      {"policy: {version: 2.16}\n", 1, 19, "policy.version", "between 2.8 and 2.15", "2.15"},
      {"policy: {profile: fsdp1, version: 2.0}\n", 1, 35, "policy.version", "between 2.1 and 2.15",
       "2.1"},
      {"policy: {version: new}\n", 1, 19, "policy.version", "must be a PyTorch release", "'2.14'"},
      {"policy: {version: 2.8.1}\n", 1, 19, "policy.version", "must be a PyTorch release",
       "'2.14'"},
      {"policy: {version: 2.-8}\n", 1, 19, "policy.version", "must be a PyTorch release", "'2.14'"},
      {"policy: {reshard_after_forward: 0}\n", 1, 33, "policy.reshard_after_forward",
       "must be between 1 and", ""},
      {mesh + "policy: {reshard_after_forward: 3}\n", 2, 33, "policy.reshard_after_forward",
       "must divide the shard group of 8, is 3", ""},
      {mesh + "policy: {reshard_after_forward: 9}\n", 2, 33, "policy.reshard_after_forward",
       "must not be larger than the shard group of 8", "write true"},
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
      {"policy: {version: '2.12', separate_reduce_scatter_group: true}\n", 1, 58,
       "policy.separate_reduce_scatter_group", "PyTorch 2.12 has one group only", "2.13"},
      {"policy: {activation_checkpointing: all}\n", 1, 36, "policy.activation_checkpointing",
       "'all' is not one of none, selective, full", "did you mean 'full'?"},
      {"policy: {shard_dims: {w: 9}}\n", 1, 26, "policy.shard_dims.w", "must be between 0 and 7",
       ""},
      {"policy: {ignored_params: [a, a]}\n", 1, 30, "policy.ignored_params[1]",
       "the expression 'a' is listed twice", ""},
  });
}

}  // namespace
}  // namespace fsdp
