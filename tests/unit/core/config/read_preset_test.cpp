#include "core/config/read_preset.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "bad_config.hpp"

namespace fsdp {
namespace {

FsdpPolicy policy_of(const std::string& text) {
  return load_run_config_text(tiny_model + "policy: {" + text + "}\n", "run.yaml").policy;
}

template <class P>
P preset(const std::string& text) {
  return std::get<P>(policy_of(text).preset.value());
}

TEST(ReadPreset, NoneIsTheDefault) { EXPECT_FALSE(policy_of("").preset); }

TEST(ReadPreset, Torchtitan) {
  EXPECT_EQ(preset<TitanPreset>("preset: torchtitan").reshard, TitanReshard::standard);
  const std::string key = "preset: torchtitan, torchtitan: {fsdp_reshard_after_forward: ";
  EXPECT_EQ(preset<TitanPreset>(key + "always}").reshard, TitanReshard::always);
  EXPECT_EQ(preset<TitanPreset>(key + "never}").reshard, TitanReshard::never);
}

TEST(ReadPreset, Accelerate) {
  const auto defaults = preset<AcceleratePreset>("preset: accelerate");
  EXPECT_EQ(defaults.wrap, AccelerateWrap::transformer);
  EXPECT_TRUE(defaults.classes.empty());
  EXPECT_EQ(defaults.min_params, 100'000'000);
  EXPECT_TRUE(defaults.reshard_after_forward);
  const auto own = preset<AcceleratePreset>(
      "preset: accelerate, accelerate: {fsdp_auto_wrap_policy: SIZE_BASED_WRAP, "
      "fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer, fsdp_min_num_params: 2000, "
      "fsdp_reshard_after_forward: false}");
  EXPECT_EQ(own.wrap, AccelerateWrap::size);
  EXPECT_EQ(own.classes, std::vector<std::string>{"LlamaDecoderLayer"});
  EXPECT_EQ(own.min_params, 2000);
  EXPECT_FALSE(own.reshard_after_forward);
}

TEST(ReadPreset, Torchtune) {
  EXPECT_EQ(preset<TorchtunePreset>(
                "preset: torchtune, torchtune: {custom_sharded_layers: [tok_embeddings, output]}")
                .custom_sharded_layers,
            (std::vector<std::string>{"tok_embeddings", "output"}));
}

TEST(ReadPreset, LlmFoundryIsFsdp1WithItsDefaults) {
  const FsdpPolicy policy = policy_of("preset: llm-foundry");
  EXPECT_EQ(policy.profile, Profile::fsdp1);
  EXPECT_FALSE(policy.preset) << "its knobs stand in the policy";
  EXPECT_EQ(policy.param_dtype, DType::bf16);
  EXPECT_EQ(policy.reduce_dtype, DType::bf16);
  EXPECT_EQ(policy.fsdp1.backward_prefetch, BackwardPrefetch::post);
  EXPECT_TRUE(policy.fsdp1.use_orig_params);
}

TEST(ReadPreset, Refusals) {
  expect_all_refused({
      {"policy: {preset: deepspeed}\n", 1, 18, "policy.preset", "'deepspeed' is not one of", ""},
      {"policy: {preset: torchtitan, wrap: {by: block}}\n", 1, 36, "policy.wrap",
       "the preset decides it", "remove the key, or the preset"},
      {"policy: {preset: accelerate, torchtitan: {}}\n", 1, 42, "policy.torchtitan",
       "belongs to preset torchtitan", "set preset: torchtitan"},
      {"policy: {accelerate: {}}\n", 1, 22, "policy.accelerate", "belongs to preset accelerate",
       "set preset: accelerate"},
      {"policy: {preset: torchtitan, torchtitan: {fsdp_reshard_after_forward: maybe}}\n", 1, 71,
       "policy.torchtitan.fsdp_reshard_after_forward", "'maybe' is not one of default, always", ""},
      {"policy: {profile: fsdp1, preset: torchtitan}\n", 1, 34, "policy.preset",
       "belongs to profile fsdp2", "set profile: fsdp2"},
      {"policy: {preset: accelerate, accelerate: {min_num_params: 3}}\n", 1, 43,
       "policy.accelerate.min_num_params", "unknown key", "fsdp_min_num_params"},
  });
}

}  // namespace
}  // namespace fsdp
