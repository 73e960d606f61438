#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bad_config.hpp"
#include "core/model/module_tree.hpp"

namespace fsdp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string source_dir = FSDP_SOURCE_DIR;

RunConfig with_model(const std::string& model) {
  return load_run_config_text("model: " + model + "\n", source_dir + "/configs/runs/x.yaml");
}

struct KnownTotal {
  const char* file;
  std::int64_t parameters;
};

TEST(ReadModel, ShippedModelsHaveTheKnownTotals) {
  constexpr KnownTotal models[] = {{"gpt2-124m", 124'439'808},     {"gpt2-355m", 354'823'168},
                                   {"gpt2-774m", 774'030'080},     {"gpt2-1.5b", 1'557'611'200},
                                   {"llama2-7b", 6'738'415'616},   {"llama3-8b", 8'030'261'248},
                                   {"llama3-70b", 70'553'706'496}, {"llama3-405b", 405'853'388'800},
                                   {"llama3.2-1b", 1'235'814'400}};
  for (const KnownTotal& known : models) {
    const RunConfig config = with_model("models/" + std::string(known.file) + ".yaml");
    EXPECT_EQ(parameter_total(config.model), known.parameters) << known.file;
    EXPECT_EQ(config.model.name, known.file);
    EXPECT_EQ(config.model.scaling, "") << known.file;
  }
}

TEST(ReadModel, ScalingNamesWhatDiffersInOneOrder) {
  const RunConfig config = with_model(
      "{file: models/gpt2-124m.yaml, scale: {layers: 4, heads: 12, vocab: 5024, hidden: 96}}");
  EXPECT_EQ(config.model.scaling, "vocab 50257 -> 5024, layers 12 -> 4, hidden 768 -> 96");
  EXPECT_EQ(config.model.name, "gpt2-124m");
  EXPECT_EQ(block_paths(config.model).size(), 4U);
  const Module* wte = find_module(config.model.root, "transformer.wte");
  ASSERT_NE(wte, nullptr);
  EXPECT_EQ(wte->parameters[0].shape, (std::vector<std::int64_t>{5024, 96}));
}

TEST(ReadModel, ScalingToTheSameValueIsNoScaling) {
  EXPECT_EQ(with_model("{file: models/gpt2-124m.yaml, scale: {layers: 12}}").model.scaling, "");
}

TEST(ReadModel, ModelInPlace) {
  const RunConfig config = with_model(
      "{name: t, family: llama, vocab: 96, layers: 2, hidden: 64, ffn: 160, heads: 4, kv_heads: 2, "
      "tied: true, scale: {vocab: 48}}");
  EXPECT_EQ(config.model.scaling, "vocab 96 -> 48");
  const Module* head = find_module(config.model.root, "lm_head");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->parameters[0].tied_to, "model.embed_tokens.weight");
  const auto& source = std::get<FamilySource>(config.model_source);
  EXPECT_EQ(std::get<LlamaDimensions>(source.dimensions).vocab, 96);
  EXPECT_EQ(std::get<LlamaDimensions>(source.scaled).vocab, 48);
}

TEST(ReadModel, Refusals) {
  const std::string dims = "vocab: 64, positions: 16, layers: 2, hidden: 8";
  expect_all_refused({
      {"model: {hf: config.json, dtype: f64}\n", 1, 13, "model.hf", "no such file 'config.json'",
       "looked for"},
      {"model: {hf: x, scale: {layers: 2}}\n", 1, 16, "model.scale", "unknown key", "dtype"},
      {"model: {safetensors: x, hf: y}\n", 1, 9, "model.safetensors", "unknown key", "hf"},
      {"model: {safetensors: index.json}\n", 1, 22, "model.safetensors", "no such file",
       "looked for"},
      {"model: {}\n", 1, 8, "model", "names no model", "{file: path.yaml}"},
      {"model: {fiel: x}\n", 1, 9, "model.fiel", "unknown key", "did you mean 'file'?"},
      {"model: {tree: x, scale: {layers: 2}}\n", 1, 18, "model.scale", "unknown key", "tree"},
      {"model: {name: t, family: bert}\n", 1, 26, "model.family",
       "'bert' is not one of gpt2, llama", ""},
      {"model: {name: t, family: gpt2, " + dims + "}\n", 1, 8, "model.heads", "is missing",
       "add 'heads: ...'"},
      {"model: {name: t, family: gpt2, ffn: 3, " + dims + ", heads: 2}\n", 1, 32, "model.ffn",
       "unknown key", "known here"},
      {"model: {name: t, family: gpt2, " + dims + ", heads: 3}\n", 1, 8, "model",
       "hidden 8 is not a multiple of heads 3", ""},
      {"model: {name: t, family: gpt2, " + dims + ", heads: 2, scale: {heads: 3}}\n", 1, 97,
       "model.scale", "hidden 8 is not a multiple of heads 3", ""},
      {"model: {name: t, family: gpt2, " + dims + ", heads: 2, scale: {layer: 3}}\n", 1, 98,
       "model.scale.layer", "unknown key", "did you mean 'layers'?"},
      {"model: {name: t, family: gpt2, " + dims + ", heads: 2, scale: {layers: 0}}\n", 1, 106,
       "model.scale.layers", "must be between 1 and 1024, is 0", ""},
  });
}

TEST(ReadModel, MissingFileListsWhereItWasLookedFor) {
  expect_all_refused({{"model: no-such.yaml\n", 1, 8, "model", "no such file 'no-such.yaml'",
                       "looked for no-such.yaml (No such file or directory), ../no-such.yaml"},
                      {"model: {file: /no/such.yaml}\n", 1, 15, "model.file",
                       "no such file '/no/such.yaml'", "looked for /no/such.yaml ("},
                      {"model: .\n", 1, 8, "model", "no such file '.'", "not a file"}});
}

/// A file that holds 2 x 4 elements of BF16 for each name.
std::string safetensors(const std::vector<std::string>& names) {
  std::string json;
  for (std::size_t i = 0; i < names.size(); ++i) {
    json += fmt::format(R"({}"{}": {{"dtype": "BF16", "shape": [2, 4], "data_offsets": [{}, {}]}})",
                        i == 0 ? '{' : ',', names[i], 16 * i, 16 * (i + 1));
  }
  json += '}';
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(json.size() >> (8 * i) & 0xffU);
  }
  return bytes + json + std::string(16 * names.size(), '\x3f');
}

class ReadModelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    // The name holds the test's, so that tests may run side by side.
    folder_ = std::filesystem::temp_directory_path() /
              ("fsdp-config-" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_ / "runs");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  RunConfig load(const std::string& text) const {
    return load_run_config_text(text, (folder_ / "runs" / "run.yaml").string());
  }

  std::string refusal(const std::string& text) const {
    try {
      load(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ReadModelFiles, TreeIsFoundBesideTheRunFile) {
  write("runs/tree.json", write_module_tree(gpt2("g", {.hidden = 8, .layers = 1, .heads = 2})));
  const RunConfig config = load("model: {tree: tree.json}\n");
  EXPECT_EQ(config.model.name, "g");
  EXPECT_EQ(std::get<TreeSource>(config.model_source).path, "tree.json");
}

TEST_F(ReadModelFiles, TreeErrorsNameTheFileAndThePointer) {
  const std::string path =
      write("tree.json", R"({"root": {"name": 1, "class": "A"}, "calls": []})");
  try {
    load("model: {tree: tree.json}\n");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    EXPECT_NE(text.find("/root/name: must be a string"), std::string::npos) << text;
  }
}

TEST_F(ReadModelFiles, HfConfigIsFoundBesideTheRunFile) {
  write("runs/config.json", R"({"model_type": "llama", "num_hidden_layers": 2})");
  const RunConfig config = load("model: {hf: config.json}\n");
  EXPECT_EQ(config.model.name, "LlamaForCausalLM");
  EXPECT_EQ(block_paths(config.model).size(), 2U);
  EXPECT_EQ(config.model.root.children[1].parameters[0].dtype, DType::f32);
  EXPECT_EQ(std::get<HfSource>(config.model_source).path, "config.json");
  const RunConfig half = load("model: {hf: config.json, dtype: bf16}\n");
  EXPECT_EQ(half.model.root.children[1].parameters[0].dtype, DType::bf16);
  EXPECT_EQ(std::get<HfSource>(half.model_source).dtype, DType::bf16);
}

TEST_F(ReadModelFiles, HfErrorsNameTheFileAndThePointer) {
  const std::string path = write("config.json", R"({"model_type": "bert"})");
  EXPECT_THAT(refusal("model: {hf: config.json}\n"),
              AllOf(StartsWith(path + ": config.json: /model_type: 'bert' is not built in"),
                    HasSubstr("dump_module_tree.py")));
  write("config.json", R"({"model_type": "llama"})");
  EXPECT_THAT(refusal("model: {hf: config.json, dtype: i64}\n"),
              HasSubstr("model.dtype: 'i64' is not one of f32, bf16, f16"));
}

TEST_F(ReadModelFiles, SafetensorsGiveTheSavedTensors) {
  write("one.safetensors", safetensors({"layers.0.up.weight", "head.weight"}));
  const RunConfig config = load("model: {safetensors: one.safetensors}\n");
  EXPECT_EQ(parameter_total(config.model), 16);
  EXPECT_EQ(block_paths(config.model), std::vector<std::string>{"layers.0"});
  EXPECT_EQ(find_module(config.model.root, "head")->parameters[0].dtype, DType::bf16);
  EXPECT_FALSE(std::get<SafetensorsSource>(config.model_source).dtype);
  const RunConfig f32 = load("model: {safetensors: one.safetensors, dtype: f32}\n");
  EXPECT_EQ(find_module(f32.model.root, "head")->parameters[0].dtype, DType::f32);
}

TEST_F(ReadModelFiles, AnIndexGivesTheTensorsOfItsFiles) {
  write("a.safetensors", safetensors({"layers.0.up.weight", "layers.1.up.weight"}));
  write("b.safetensors", safetensors({"head.weight"}));
  write("model.safetensors.index.json",
        R"({"weight_map": {"layers.0.up.weight": "a.safetensors",
            "layers.1.up.weight": "a.safetensors", "head.weight": "b.safetensors"}})");
  const std::string run = "model: {safetensors: model.safetensors.index.json}\n";
  EXPECT_EQ(parameter_total(load(run).model), 24);
  const std::string other = write("b.safetensors", safetensors({"tail.weight"}));
  EXPECT_THAT(refusal(run), AllOf(StartsWith(other + ": lacks the tensor 'head.weight'"),
                                  HasSubstr("download both again")));
  std::filesystem::remove(other);
  EXPECT_THAT(refusal(run), StartsWith(other + ": cannot be read: No such file or directory"));
}

TEST_F(ReadModelFiles, SourcesAreWrittenDownAgain) {
  write("config.json", R"({"model_type": "gpt2", "n_layer": 1})");
  write("x.safetensors", safetensors({"head.weight"}));
  for (const auto& [model, line] :
       {std::pair{"{hf: config.json}", "model: {hf: config.json, dtype: f32}  # contents "},
        {"{hf: config.json, dtype: f16}", "model: {hf: config.json, dtype: f16}  # contents "},
        {"{safetensors: x.safetensors}", "model: {safetensors: x.safetensors}  # contents "},
        {"{safetensors: x.safetensors, dtype: f32}",
         "model: {safetensors: x.safetensors, dtype: f32}  # contents "}}) {
    const std::string text = print_config(load(fmt::format("model: {}\n", model)));
    EXPECT_THAT(text, StartsWith(line));
    EXPECT_EQ(print_config(load(text)), text);
  }
}

TEST_F(ReadModelFiles, DamagedSafetensorsAreRefused) {
  const std::string whole = safetensors({"layers.0.up.weight", "head.weight"});
  const std::string run = "model: {safetensors: x.safetensors}\n";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string path = write("x.safetensors", whole.substr(0, length));
    EXPECT_THAT(refusal(run), StartsWith(path + ": safetensors: ")) << length;
  }
}

TEST_F(ReadModelFiles, ErrorsInsideAModelFileNameThatFile) {
  const std::string path = write("m.yaml", "name: m\nfamily: gpt2\nvocab: big\n");
  try {
    load("model: m.yaml\n");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.place().file, path);
    EXPECT_EQ(error.place().line, 3);
    EXPECT_EQ(error.place().column, 8);
    EXPECT_EQ(error.place().key, "vocab");
  }
}

TEST_F(ReadModelFiles, ModelFilesStateFullDimensions) {
  write("m.yaml", "name: m\nfamily: gpt2\nscale: {vocab: 3}\n");
  EXPECT_THROW(load("model: m.yaml\n"), ConfigError);
  write("list.yaml", "- a\n");
  EXPECT_THROW(load("model: list.yaml\n"), ConfigError);
}

}  // namespace
}  // namespace fsdp
