#include "core/model/hf_config.hpp"

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
