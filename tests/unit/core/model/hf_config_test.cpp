#include "core/model/hf_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "core/model/families.hpp"
#include "core/model/module_tree.hpp"
#include "core/units/error.hpp"
#include "tests/support/model_trees.hpp"

namespace fsdp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string message(const std::string& config) {
  try {
    read_hf_config(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

class RecordedConfig : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedConfig, GivesTheTreeAndTheCallsOfTransformers) {
  const std::string folder = std::string(FSDP_SOURCE_DIR) + "/tests/golden/pytorch/" + GetParam();
  const ModelSpec made = read_hf_config(text_of(folder + "/config.json"));
  const ModelSpec recorded = read_module_tree(text_of(folder + "/tree.json"));
  EXPECT_EQ(testing::first_difference(made, recorded), "");
  EXPECT_EQ(made.name, recorded.name);
}

INSTANTIATE_TEST_SUITE_P(HfConfig, RecordedConfig,
                         ::testing::Values("hf-gpt2", "hf-llama", "hf-llama-tied", "hf-mixtral",
                                           "hf-qwen2", "hf-t5", "hf-vit", "accelerate-llama",
                                           "accelerate-tied"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

struct Total {
  std::string config;
  std::int64_t total;
};

TEST(HfConfig, TotalsOfPublishedModels) {
  const auto decoder = [](const char* type, const char* sizes) {
    return fmt::format(R"({{"model_type": "{}", {}}})", type, sizes);
  };
  const std::vector<Total> models{
      {decoder("gpt2", R"("n_embd": 768, "n_layer": 12, "n_head": 12)"), 124'439'808},
      {decoder("gpt2", R"("n_embd": 1600, "n_layer": 48, "n_head": 25)"), 1'557'611'200},
      {decoder("llama", R"("hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
               "num_attention_heads": 32, "vocab_size": 32000)"),
       6'738'415'616},
      {decoder("llama", R"("hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40,
               "num_attention_heads": 40, "vocab_size": 32000)"),
       13'015'864'320},
      {decoder("llama", R"("hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
               "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 32000)"),
       68'976'648'192},
      {decoder("llama", R"("hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
               "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256)"),
       8'030'261'248},
      {decoder("llama", R"("hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
               "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256)"),
       70'553'706'496},
      {decoder("llama", R"("hidden_size": 16384, "intermediate_size": 53248,
               "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
               "vocab_size": 128256)"),
       405'853'388'800},
      {decoder("llama", R"("hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
               "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
               "tie_word_embeddings": true)"),
       1'235'814'400},
      {decoder("llama", R"("hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28,
               "num_attention_heads": 24, "num_key_value_heads": 8, "vocab_size": 128256,
               "tie_word_embeddings": true)"),
       3'212'749'824},
      {decoder("mistral", R"("hidden_size": 4096, "intermediate_size": 14336,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "vocab_size": 32000)"),
       7'241'732'096},
      {decoder("mixtral", R"("hidden_size": 4096, "intermediate_size": 14336,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "vocab_size": 32000, "num_local_experts": 8)"),
       46'702'792'704},
      {decoder("mixtral", R"("hidden_size": 6144, "intermediate_size": 16384,
               "num_hidden_layers": 56, "num_attention_heads": 48, "num_key_value_heads": 8,
               "vocab_size": 32768, "num_local_experts": 8)"),
       140'630'071'296},
      {decoder("t5",
               R"("d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8)"),
       60'506'624},
      {decoder("t5", R"("d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12,
               "num_heads": 12)"),
       222'903'552},
      {decoder("t5", R"("d_model": 1024, "d_kv": 128, "d_ff": 65536, "num_layers": 24,
               "num_heads": 128)"),
       11'307'321'344},
      {decoder("t5", R"("d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_layers": 24,
               "num_heads": 32, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"),
       2'849'757'184},
      {R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 768,
           "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
           "num_labels": 1000})",
       86'567'656},
  };
  for (const Total& model : models) {
    EXPECT_EQ(parameter_total(read_hf_config(model.config)), model.total) << model.config;
  }
}

TEST(HfConfig, FamiliesAreTheSameBuilders) {
  EXPECT_EQ(testing::first_difference(
                gpt2("g", {.hidden = 96, .layers = 2, .heads = 4, .vocab = 50, .positions = 16}),
                read_hf_config(R"({"model_type": "gpt2", "n_embd": 96, "n_layer": 2, "n_head": 4,
                                   "vocab_size": 50, "n_positions": 16})")),
            "");
  EXPECT_EQ(
      testing::first_difference(
          llama("l",
                {.hidden = 64, .ffn = 96, .layers = 2, .heads = 4, .kv_heads = 2, .vocab = 50}),
          read_hf_config(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
                             "num_hidden_layers": 2, "num_attention_heads": 4,
                             "num_key_value_heads": 2, "vocab_size": 50})")),
      "");
}

TEST(HfConfig, AttentionAndExpertsAreFilledIn) {
  const ModelSpec model = read_hf_config(R"({"model_type": "mixtral", "num_hidden_layers": 1})");
  const Module* attention = find_module(model.root, "model.layers.0.self_attn");
  ASSERT_TRUE(attention != nullptr && attention->attention);
  EXPECT_EQ(attention->attention->heads, 32);
  EXPECT_EQ(attention->attention->head_dim, 128);
  const Module* experts = find_module(model.root, "model.layers.0.mlp.experts");
  ASSERT_TRUE(experts != nullptr && experts->experts);
  EXPECT_EQ(experts->experts->count, 8);
  EXPECT_EQ(experts->experts->per_token, 2);
}

TEST(HfConfig, DTypeIsF32UntilSaidOtherwise) {
  ModelSpec model = read_hf_config(R"({"model_type": "vit", "num_hidden_layers": 1,
                                       "torch_dtype": "bfloat16"})");
  const auto of = [&model] {
    return find_module(model.root, "classifier")->parameters.at(0).dtype;
  };
  EXPECT_EQ(of(), DType::f32);
  set_dtype(model, DType::bf16);
  EXPECT_EQ(of(), DType::bf16);
}

TEST(HfConfig, UnknownModelsAreToldWhatToDo) {
  EXPECT_THAT(message(R"({"model_type": "bert"})"),
              AllOf(StartsWith("config.json: /model_type: 'bert' is not built in"),
                    HasSubstr("llama"), HasSubstr("gemma3_text"), HasSubstr("t5"),
                    HasSubstr("configs/models/dump_module_tree.py")));
  EXPECT_THAT(message(R"({"model_type": "llama", "architectures": ["LlamaForTokens"]})"),
              AllOf(StartsWith("config.json: /architectures/0: "), HasSubstr("LlamaForCausalLM"),
                    HasSubstr("dump_module_tree.py")));
}

TEST(HfConfig, RefusalsNameThePlace) {
  const auto llama_with = [](const std::string& more) {
    return message(R"({"model_type": "llama", )" + more + "}");
  };
  EXPECT_THAT(message("{"), StartsWith("config.json: not JSON: at byte 2"));
  EXPECT_EQ(message("[]"), "config.json: /: must be an object, is array");
  EXPECT_EQ(message("{}"), "config.json: /: lacks the key 'model_type'");
  EXPECT_EQ(message(R"({"model_type": 3})"),
            "config.json: /model_type: must be a string, is number");
  EXPECT_EQ(llama_with(R"("hidden_size": -4096)"),
            "config.json: /hidden_size: must be between 1 and 16777216, is -4096");
  EXPECT_EQ(llama_with(R"("hidden_size": 4096.5)"),
            "config.json: /hidden_size: must be a whole number, is 4096.5");
  EXPECT_EQ(llama_with(R"("hidden_size": "4096")"),
            "config.json: /hidden_size: must be a whole number, is string");
  EXPECT_EQ(llama_with(R"("num_hidden_layers": 1025)"),
            "config.json: /num_hidden_layers: must be between 1 and 1024, is 1025");
  EXPECT_EQ(llama_with(R"("vocab_size": 18446744073709551615)"),
            "config.json: /vocab_size: must be between 1 and 16777216, is 18446744073709551615");
  EXPECT_THAT(llama_with(R"("vocab_size": 99999999999999999999999)"),
              StartsWith("config.json: /vocab_size: must be a whole number, is "));
  EXPECT_THAT(llama_with(R"("vocab_size": NaN)"), HasSubstr("not JSON: at byte"));
  EXPECT_THAT(llama_with(R"("vocab_size": Infinity)"), HasSubstr("not JSON: at byte"));
  EXPECT_THAT(llama_with(R"("vocab_size": 5, "vocab_size": 6)"),
              HasSubstr("the key 'vocab_size' stands twice"));
  EXPECT_EQ(llama_with(R"("hidden_size": 100, "num_attention_heads": 7)"),
            "config.json: /: hidden_size 100 is not a multiple of num_attention_heads 7");
  EXPECT_EQ(llama_with(R"("mlp_bias": "yes")"),
            "config.json: /mlp_bias: must be true or false, is string");
  EXPECT_EQ(llama_with(R"("vocab_size": 16777216, "hidden_size": 16777216)"),
            "config.json: more than 2^50 parameters; check the dimensions");
  EXPECT_THAT(llama_with("\"\xff\": 1"), HasSubstr("not JSON: at byte"));
  EXPECT_THAT(llama_with(R"("hidden_act": "softplus")"),
              StartsWith("config.json: /hidden_act: unknown activation 'softplus'; known: gelu"));
}

TEST(HfConfig, DeepNestingIsRefusedWithoutExhaustingTheStack) {
  EXPECT_THAT(message(std::string(1'000'000, '[')), HasSubstr("nested deeper than"));
  EXPECT_THAT(message(R"({"model_type": "llama", "x": )" + std::string(200'000, '[') +
                      std::string(200'000, ']') + "}"),
              HasSubstr("nested deeper than"));
}

}  // namespace
}  // namespace fsdp
