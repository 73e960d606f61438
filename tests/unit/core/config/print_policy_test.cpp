#include "core/config/print_policy.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "bad_config.hpp"
#include "policy_fields.hpp"

namespace fsdp {
namespace {

void expect_reads_back(const FsdpPolicy& policy) {
  const std::string text = print_policy(policy);
  SCOPED_TRACE(text);
  const FsdpPolicy read = load_run_config_text(tiny_model + text, "run.yaml").policy;
  EXPECT_EQ(policy_fields(read), policy_fields(policy));
}

FsdpPolicy of_profile(Profile profile) {
  FsdpPolicy policy;
  policy.profile = profile;
  return policy;
}

/// Names that YAML would read as something else, or not at all, without quotes.
const std::vector<std::string> awkward{"true",  "~",   "1e3",  "a: b",          "#c",  "d 'e'",
                                       "\"f\"", "[g]", "{h}",  "layers\\.\\d+", "- i", "*j",
                                       "k, l",  " m ", "n\no", "\xc3\xbc",      "2.10"};

TEST(PrintPolicy, DefaultsReadBack) {
  expect_reads_back(of_profile(Profile::fsdp2));
  expect_reads_back(of_profile(Profile::fsdp1));
}

TEST(PrintPolicy, EveryWrapRuleReadsBack) {
  for (const WrapRule& rule : std::vector<WrapRule>{
           WrapNone{}, WrapBlock{}, WrapSubBlock{}, WrapTitan{}, WrapAlways{}, WrapEvery{3},
           WrapPartition{{1, 3, 2}}, WrapClass{awkward}, WrapName{R"(layers\.\d+\.(mlp|attn))"},
           WrapName{"a: 'b'"}, WrapSize{}, WrapSize{.min_params = 7, .force_leaf = {"A", "B c"}},
           WrapSize{.min_params = 0, .force_leaf = {}, .exclude = {}}, WrapTotalSize{},
           WrapTotalSize{123'456'789'012}, WrapGroups{}, WrapGroups{{{"a.0"}, {"a.1", "b c"}}},
           WrapGroups{{awkward}}}) {
    FsdpPolicy policy;
    policy.wrap = rule;
    expect_reads_back(policy);
    policy.profile = Profile::fsdp1;
    expect_reads_back(policy);
  }
}

TEST(PrintPolicy, EveryKnobOfFsdp2ReadsBack) {
  FsdpPolicy policy;
  policy.version = {2, 15};
  policy.reshard_after_forward = {4};
  policy.root_reshard = true;
  policy.reshard_units = {{"a+b", Reshard::keep()}, {"x: y", {2}}, {"z", Reshard::free()}};
  policy.forward_prefetch = PrefetchLists{{"a+b", {"c", "d e"}}, {"~", awkward}};
  policy.backward_prefetch = 7;
  policy.param_dtype = DType::f16;
  policy.reduce_dtype = DType::bf16;
  policy.reduce_scatter_buffers = 3;
  policy.separate_reduce_scatter_group = true;
  policy.gradient_divide_factor = 0.1;
  policy.force_sum_reduction = true;
  policy.keep_sharded_in_backward = awkward;
  policy.shard_dims = {{"z\\.w", 1}, {"a", 0}, {"b: c", 2}};
  policy.ignored_params = {".*lora.*", "it's"};
  policy.fp8_gather_classes = {"Linear", "Float8Linear"};
  policy.activation_checkpointing = Checkpointing::selective;
  policy.cpu_offload = true;
  expect_reads_back(policy);
  policy.root_reshard = false;
  policy.forward_prefetch = 2;
  policy.backward_prefetch = PrefetchLists{{"c", {"a+b"}}};
  policy.activation_checkpointing = Checkpointing::full;
  expect_reads_back(policy);
}

TEST(PrintPolicy, FactorsReadBackToTheLastBit) {
  for (const double factor : {1.0, 0.1, 1.0 / 3.0, 1e-300, 123456789.123456789, 3e20,
                              std::numeric_limits<double>::min()}) {
    FsdpPolicy policy;
    policy.gradient_divide_factor = factor;
    expect_reads_back(policy);
  }
}

TEST(PrintPolicy, EveryArgumentOfFsdp1ReadsBack) {
  for (const ShardingStrategy sharding :
       {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op,
        ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2}) {
    for (const BackwardPrefetch prefetch :
         {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none}) {
      FsdpPolicy policy = of_profile(Profile::fsdp1);
      policy.version = {2, 1};
      policy.fsdp1 = {.sharding = sharding,
                      .backward_prefetch = prefetch,
                      .forward_prefetch = prefetch == BackwardPrefetch::pre,
                      .limit_all_gathers = prefetch == BackwardPrefetch::post,
                      .use_orig_params = sharding == ShardingStrategy::hybrid_shard};
      policy.param_dtype = DType::bf16;
      policy.cpu_offload = true;
      expect_reads_back(policy);
    }
  }
}

TEST(PrintPolicy, EveryPresetReadsBack) {
  std::vector<Preset> presets{AcceleratePreset{}, TorchtunePreset{},
                              TorchtunePreset{{"tok_embeddings", "a: b"}}};
  for (const TitanReshard reshard :
       {TitanReshard::standard, TitanReshard::always, TitanReshard::never}) {
    presets.emplace_back(TitanPreset{reshard});
  }
  for (const AccelerateWrap wrap :
       {AccelerateWrap::transformer, AccelerateWrap::size, AccelerateWrap::none}) {
    presets.emplace_back(AcceleratePreset{.wrap = wrap,
                                          .classes = {"LlamaDecoderLayer", "B c"},
                                          .min_params = 2000,
                                          .reshard_after_forward = false});
  }
  for (const Preset& preset : presets) {
    FsdpPolicy policy;
    policy.preset = preset;
    policy.reduce_scatter_buffers = 2;
    expect_reads_back(policy);
  }
}

TEST(PrintPolicy, WordsAndLists) {
  EXPECT_EQ(yaml_reshard(Reshard::keep()), "false");
  EXPECT_EQ(yaml_reshard(Reshard::free()), "true");
  EXPECT_EQ(yaml_reshard({8}), "8");
  EXPECT_EQ(yaml_names({}), "[]");
  EXPECT_EQ(yaml_names({"a", "b c"}), "[a, \"b c\"]");
}

}  // namespace
}  // namespace fsdp
