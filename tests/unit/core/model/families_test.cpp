#include "core/model/families.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

std::int64_t owned_below(const Module& module) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : module.parameters) {
    sum += parameter.tied_to.empty() ? parameter.numel() : 0;
  }
  for (const Module& child : module.children) {
    sum += owned_below(child);
  }
  return sum;
}

std::int64_t block_total(const ModelSpec& model) {
  return owned_below(*find_module(model.root, block_paths(model).front()));
}

void collect_names(const Module& module, std::vector<std::string>& names) {
  for (const Parameter& parameter : module.parameters) {
    names.push_back(join_path(module.path, parameter.name));
  }
  for (const Module& child : module.children) {
    collect_names(child, names);
  }
}

std::vector<std::string> called(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const ModuleCall& call : model.calls) {
    names.push_back(call.module);
  }
  return names;
}

struct Gpt2Total {
  Gpt2Dimensions dimensions;
  std::int64_t block;
  std::int64_t total;
};

TEST(Gpt2, TotalsOfTheFourSizes) {
  const Gpt2Total sizes[] = {
      {{.hidden = 768, .layers = 12, .heads = 12}, 7'087'872, 124'439'808},
      {{.hidden = 1024, .layers = 24, .heads = 16}, 12'596'224, 354'823'168},
      {{.hidden = 1280, .layers = 36, .heads = 20}, 19'677'440, 774'030'080},
      {{.hidden = 1600, .layers = 48, .heads = 25}, 30'740'800, 1'557'611'200}};
  for (const Gpt2Total& size : sizes) {
    const ModelSpec model = gpt2("g", size.dimensions);
    EXPECT_EQ(block_total(model), size.block);
    EXPECT_EQ(parameter_total(model), size.total);
  }
}

struct LlamaTotal {
  LlamaDimensions dimensions;
  std::int64_t block;
  std::int64_t total;
};

TEST(Llama, TotalsOfThePublishedSizes) {
  const LlamaTotal sizes[] = {
      {{.hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32, .kv_heads = 32, .vocab = 32000},
       202'383'360,
       6'738'415'616},
      {{.hidden = 4096, .ffn = 14336, .layers = 32, .heads = 32, .kv_heads = 8, .vocab = 128256},
       218'112'000,
       8'030'261'248},
      {{.hidden = 8192, .ffn = 28672, .layers = 80, .heads = 64, .kv_heads = 8, .vocab = 128256},
       855'654'400,
       70'553'706'496},
      {{.hidden = 16384, .ffn = 53248, .layers = 126, .heads = 128, .kv_heads = 8, .vocab = 128256},
       3'187'703'808,
       405'853'388'800},
      {{.hidden = 2048,
        .ffn = 8192,
        .layers = 16,
        .heads = 32,
        .kv_heads = 8,
        .vocab = 128256,
        .tied = true},
       60'821'504,
       1'235'814'400}};
  for (const LlamaTotal& size : sizes) {
    const ModelSpec model = llama("l", size.dimensions);
    EXPECT_EQ(block_total(model), size.block);
    EXPECT_EQ(parameter_total(model), size.total);
  }
}

TEST(Gpt2, ParametersAreInRegistrationOrderWithTheShapesOfConv1D) {
  const ModelSpec model =
      gpt2("g", {.hidden = 8, .layers = 1, .heads = 2, .vocab = 10, .positions = 4});
  std::vector<std::string> names;
  collect_names(model.root, names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "transformer.wte.weight", "transformer.wpe.weight",
                       "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
                       "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
                       "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
                       "transformer.h.0.ln_2.weight", "transformer.h.0.ln_2.bias",
                       "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_fc.bias",
                       "transformer.h.0.mlp.c_proj.weight", "transformer.h.0.mlp.c_proj.bias",
                       "transformer.ln_f.weight", "transformer.ln_f.bias", "lm_head.weight"}));
  const auto shape = [&model](const std::string& path) {
    return find_module(model.root, path)->parameters[0].shape;
  };
  EXPECT_EQ(shape("transformer.h.0.attn.c_attn"), (std::vector<std::int64_t>{8, 24}));
  EXPECT_EQ(shape("transformer.h.0.mlp.c_fc"), (std::vector<std::int64_t>{8, 32}));
  EXPECT_EQ(shape("transformer.h.0.mlp.c_proj"), (std::vector<std::int64_t>{32, 8}));
  EXPECT_EQ(shape("lm_head"), (std::vector<std::int64_t>{10, 8}));
  EXPECT_EQ(find_module(model.root, "lm_head")->parameters[0].tied_to, "transformer.wte.weight");
}

TEST(Llama, RegistrationOrderIsNotCallOrder) {
  const ModelSpec model =
      llama("l", {.hidden = 8, .ffn = 20, .layers = 1, .heads = 4, .kv_heads = 2, .vocab = 10});
  std::vector<std::string> names;
  collect_names(model.root, names);
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(names, (std::vector<std::string>{
                       "model.embed_tokens.weight", layer + "self_attn.q_proj.weight",
                       layer + "self_attn.k_proj.weight", layer + "self_attn.v_proj.weight",
                       layer + "self_attn.o_proj.weight", layer + "mlp.gate_proj.weight",
                       layer + "mlp.up_proj.weight", layer + "mlp.down_proj.weight",
                       layer + "input_layernorm.weight", layer + "post_attention_layernorm.weight",
                       "model.norm.weight", "lm_head.weight"}));
  EXPECT_EQ(called(model),
            (std::vector<std::string>{
                "", "model", "model.embed_tokens", "model.rotary_emb", "model.layers.0",
                layer + "input_layernorm", layer + "self_attn", layer + "self_attn.q_proj",
                layer + "self_attn.k_proj", layer + "self_attn.v_proj", layer + "self_attn.o_proj",
                layer + "post_attention_layernorm", layer + "mlp", layer + "mlp.gate_proj",
                layer + "mlp.act_fn", layer + "mlp.up_proj", layer + "mlp.down_proj", "model.norm",
                "lm_head"}));
  EXPECT_EQ(find_module(model.root, layer + "self_attn.k_proj")->parameters[0].shape,
            (std::vector<std::int64_t>{4, 8}));
}

TEST(Families, AttentionKnowsItsHeads) {
  const ModelSpec small = gpt2("g", {});
  const Module* attention = find_module(small.root, "transformer.h.11.attn");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->class_name, "GPT2Attention");
  ASSERT_TRUE(attention->attention.has_value());
  EXPECT_EQ(attention->attention->heads, 12);
  EXPECT_EQ(attention->attention->head_dim, 64);
  const ModelSpec large = llama("l", {});
  EXPECT_EQ(find_module(large.root, "model.layers.31.self_attn")->attention->head_dim, 128);
}

TEST(Families, InputsNeedGradientsOnceTheEmbeddingRan) {
  for (const ModelSpec& model : {gpt2("g", {.layers = 2}), llama("l", {.layers = 2})}) {
    const auto first =
        std::find_if(model.calls.begin(), model.calls.end(),
                     [](const ModuleCall& call) { return call.input_requires_grad; });
    EXPECT_TRUE(std::all_of(first, model.calls.end(),
                            [](const ModuleCall& call) { return call.input_requires_grad; }));
    EXPECT_EQ((first - 1)->module.find("layers"), std::string::npos);
    EXPECT_TRUE((first - 1)->module == "transformer.wpe" ||
                (first - 1)->module == "model.embed_tokens");
    for (const ModuleCall& call : model.calls) {
      EXPECT_NE(find_module(model.root, call.module), nullptr) << call.module;
    }
  }
}

TEST(Families, ImpossibleDimensionsAreNamed) {
  const auto message = [](auto build) -> std::string {
    try {
      build();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message([] { gpt2("g", {.hidden = 10, .heads = 3}); }),
            "gpt2: hidden 10 is not a multiple of heads 3");
  EXPECT_EQ(message([] { gpt2("g", {.layers = 0}); }), "gpt2: layers is 0; it must be at least 1");
  EXPECT_EQ(message([] { llama("l", {.kv_heads = 5}); }),
            "llama: heads 32 is not a multiple of kv_heads 5");
  EXPECT_EQ(message([] { llama("l", {.ffn = -1}); }), "llama: ffn is -1; it must be at least 1");
}

}  // namespace
}  // namespace fsdp
