#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bad_config.hpp"
#include "core/model/module_tree.hpp"

namespace fsdp {
namespace {

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
      {"model: {hf: config.json}\n", 1, 13, "model.hf", "not supported by this release",
       "write the module tree"},
      {"model: {safetensors: index.json}\n", 1, 22, "model.safetensors",
       "not supported by this release", "write the module tree"},
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
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  RunConfig load(const std::string& text) const {
    return load_run_config_text(text, (folder_ / "runs" / "run.yaml").string());
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
