#include "core/model/safetensors.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/hf_config.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string prefix(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(length >> (8 * i) & 0xffU);
  }
  return bytes;
}

/// A file's beginning, and how long the file with `data_bytes` behind it is.
std::vector<SavedTensor> read(const std::string& json, std::uint64_t data_bytes) {
  return read_safetensors_header(prefix(json.size()) + json, 8 + json.size() + data_bytes);
}

template <class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const std::string& json, std::uint64_t data_bytes = 1000) {
  return message([&] { read(json, data_bytes); });
}

std::string refusal(const std::vector<SavedTensor>& tensors) {
  return message([&] { read_safetensors(tensors); });
}

std::vector<std::string> called(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const ModuleCall& call : model.calls) {
    names.push_back(call.module);
  }
  return names;
}

void collect_tensors(const Module& module, std::vector<SavedTensor>& tensors) {
  for (const Parameter& parameter : module.parameters) {
    if (parameter.tied_to.empty()) {
      tensors.push_back({join_path(module.path, parameter.name), parameter.shape, parameter.dtype});
    }
  }
  for (const Module& child : module.children) {
    collect_tensors(child, tensors);
  }
}

/// What a checkpoint of the model would hold.
std::vector<SavedTensor> saved(const std::string& config) {
  std::vector<SavedTensor> tensors;
  collect_tensors(read_hf_config(config).root, tensors);
  return tensors;
}

TEST(SafetensorsHeader, GivesNamesShapesAndTypes) {
  const std::vector<SavedTensor> tensors = read(R"({"__metadata__": {"format": "pt"},
               "b.weight": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [8, 32]},
               "a": {"dtype": "F8_E4M3", "shape": [2, 4], "data_offsets": [0, 8]},
               "s": {"dtype": "I64", "shape": [], "data_offsets": [32, 40]}})",
                                                40);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].dtype, DType::f8_e4m3);
  EXPECT_EQ(tensors[1].name, "b.weight");
  EXPECT_THAT(tensors[1].shape, ElementsAre(3, 4));
  EXPECT_EQ(tensors[1].dtype, DType::bf16);
  EXPECT_THAT(tensors[2].shape, ElementsAre(1));
}

TEST(SafetensorsHeader, RefusalsNameThePlace) {
  EXPECT_EQ(message([] { read_safetensors_header("abc", 3); }),
            "safetensors: at byte 3: the file ends before the length of its header");
  EXPECT_THAT(message([] { read_safetensors_header(prefix(100) + "{}", 10); }),
              HasSubstr("a header of 100 bytes does not fit into the file of 10"));
  EXPECT_THAT(message([] { read_safetensors_header(prefix(~std::uint64_t{0}) + "{}", 10); }),
              HasSubstr("more than the 100000000 the format allows"));
  EXPECT_THAT(refusal("{"), StartsWith("safetensors: not JSON: at byte 2"));
  EXPECT_THAT(refusal(R"({"a": 1})"), StartsWith("safetensors: /a: must be an object"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F32", "shape": [1]}})"),
              StartsWith("safetensors: /a: lacks the key 'data_offsets'"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}})"),
              StartsWith("safetensors: /a/dtype: unknown dtype 'F64'; known: F32, BF16"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})"),
              StartsWith("safetensors: /a/shape/0: must be 1 or more, is -1"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296],
                          "data_offsets": [0, 4]}})"),
              StartsWith("safetensors: /a/shape: more than 2^48 elements"));
  EXPECT_THAT(
      refusal(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})"),
      StartsWith("safetensors: /a/data_offsets: 4 bytes, but the shape [2] of f32 needs 8"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 4),
              StartsWith("safetensors: /a/data_offsets/1: must be between 0 and 4, is 8"));
  EXPECT_THAT(refusal(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})"),
              StartsWith("safetensors: /a/data_offsets/1: must be between 8 and"));
  const std::string twice = R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
  EXPECT_THAT(refusal(fmt::format(R"({{"a": {0}, "a": {0}}})", twice)),
              HasSubstr("the key 'a' stands twice"));
}

TEST(SafetensorsIndex, NamesTheFileOfEachTensor) {
  const auto files = read_safetensors_index(
      R"({"metadata": {"total_size": 8}, "weight_map": {"b": "2.safetensors", "a": "1.st"}})");
  EXPECT_THAT(files, ElementsAre(std::pair("a", "1.st"), std::pair("b", "2.safetensors")));
}

TEST(SafetensorsIndex, RefusalsNameThePlace) {
  const auto index = [](const std::string& json) {
    return message([&] { read_safetensors_index(json); });
  };
  EXPECT_THAT(index("{}"), StartsWith("safetensors index: /: lacks the key 'weight_map'"));
  EXPECT_THAT(index(R"({"weight_map": {}})"), HasSubstr("/weight_map: names no tensor"));
  EXPECT_THAT(index(R"({"weight_map": {"a": 1}})"), HasSubstr("/weight_map/a: must be a string"));
  for (const char* name : {"../x", "/etc/passwd", "..", "", "a\\\\b", "a\\u0000"}) {
    EXPECT_THAT(index(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", name)),
                HasSubstr("is no name of a file beside the index"))
        << name;
  }
}

TEST(Safetensors, ALlamaHasItsBlocksParametersAndCalls) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 20,
      "num_hidden_layers": 12, "num_attention_heads": 4, "vocab_size": 10})";
  const ModelSpec model = read_safetensors(saved(config));
  EXPECT_EQ(parameter_total(model), parameter_total(read_hf_config(config)));
  const std::vector<std::string> blocks = block_paths(model);
  ASSERT_EQ(blocks.size(), 12U);
  EXPECT_EQ(blocks[2], "model.layers.2");
  EXPECT_EQ(blocks[10], "model.layers.10");
  EXPECT_EQ(find_module(model.root, "model.embed_tokens")->class_name, "Embedding");
  EXPECT_EQ(find_module(model.root, "model.layers")->class_name, "ModuleList");
  EXPECT_EQ(find_module(model.root, "model.layers.3.mlp.up_proj")->class_name, "Linear");
  EXPECT_EQ(find_module(model.root, "model.norm")->class_name, "Norm");
  const std::vector<std::string> calls = called(model);
  EXPECT_THAT(std::vector(calls.begin(), calls.begin() + 4),
              ElementsAre("", "model", "model.embed_tokens", "model.layers.0"));
  EXPECT_THAT(std::vector(calls.end() - 2, calls.end()), ElementsAre("model.norm", "lm_head"));
  EXPECT_FALSE(model.calls[2].input_requires_grad);
  EXPECT_TRUE(model.calls[3].input_requires_grad);
}

TEST(Safetensors, OtherModelsKeepTheirOrder) {
  const ModelSpec gpt2 =
      read_safetensors(saved(R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 2,
                                 "vocab_size": 10})"));
  EXPECT_EQ(find_module(gpt2.root, "transformer.h.1.mlp.c_fc")->class_name, "Conv1D");
  EXPECT_EQ(find_module(gpt2.root, "transformer.h.1.ln_1")->parameters[0].name, "weight");
  EXPECT_EQ(gpt2.calls.back().module, "transformer.ln_f");
  const ModelSpec t5 = read_safetensors(saved(R"({"model_type": "t5", "d_model": 8, "num_heads": 2,
      "d_kv": 4, "d_ff": 16, "num_layers": 2, "vocab_size": 10})"));
  EXPECT_THAT(block_paths(t5),
              ::testing::UnorderedElementsAre("encoder.block.0", "encoder.block.1",
                                              "decoder.block.0", "decoder.block.1"));
  const std::vector<std::string> calls = called(t5);
  const auto at = [&](const char* name) { return std::find(calls.begin(), calls.end(), name); };
  EXPECT_LT(at("shared"), at("encoder"));
  EXPECT_LT(at("encoder"), at("decoder"));
  const ModelSpec vit = read_safetensors(saved(R"({"model_type": "vit", "hidden_size": 48,
      "num_attention_heads": 4, "num_hidden_layers": 2})"));
  EXPECT_EQ(block_paths(vit).size(), 2U);
  EXPECT_EQ(vit.calls.back().module, "classifier");
}

TEST(Safetensors, ListsInsideBlocksAreNoBlocks) {
  const ModelSpec model = read_safetensors({{"layers.0.experts.0.w1.weight", {4, 4}, DType::bf16},
                                            {"layers.0.experts.1.w1.weight", {4, 4}, DType::bf16},
                                            {"layers.0.step", {1}, DType::i64},
                                            {"layers.0.quantized", {4}, DType::u8}});
  EXPECT_THAT(block_paths(model), ElementsAre("layers.0"));
  EXPECT_EQ(find_module(model.root, "layers.0.experts.1")->class_name, "Module");
  EXPECT_FALSE(find_module(model.root, "layers.0")->parameters[0].trainable);
}

TEST(Safetensors, TheRootIsCalledEvenIfItsModulesAreNumbered) {
  const ModelSpec model =
      read_safetensors({{"10.weight", {4, 4}, DType::f32}, {"2.weight", {4, 4}, DType::f32}});
  EXPECT_THAT(called(model), ElementsAre("", "2", "10"));
}

TEST(Safetensors, NamesThatMakeNoTreeAreRefused) {
  const std::vector<std::int64_t> one{1};
  EXPECT_EQ(refusal(std::vector<SavedTensor>{}), "safetensors: holds no tensor");
  EXPECT_EQ(refusal({{"a..b", one, DType::f32}}),
            "safetensors: 'a..b': a part of the name is empty");
  EXPECT_EQ(refusal({{"", one, DType::f32}}), "safetensors: '': a part of the name is empty");
  EXPECT_EQ(refusal({{"a", one, DType::f32}, {"a.b", one, DType::f32}}),
            "safetensors: 'a': is a tensor and holds others");
  EXPECT_EQ(refusal({{"a.b", one, DType::f32}, {"a.b", one, DType::f32}}),
            "safetensors: 'a.b': is there twice");
  std::string deep = "a";
  for (int i = 0; i < 5000; ++i) {
    deep += ".a";
  }
  EXPECT_THAT(refusal({{deep, one, DType::f32}}), HasSubstr("nested deeper than 128 modules"));
  std::vector<SavedTensor> huge;
  for (int i = 0; i < 5; ++i) {
    huge.push_back({fmt::format("a{}", i), {std::int64_t{1} << 48}, DType::f32});
  }
  EXPECT_EQ(refusal(huge), "safetensors: more than 2^50 parameters; check the dimensions");
}

}  // namespace
}  // namespace fsdp
