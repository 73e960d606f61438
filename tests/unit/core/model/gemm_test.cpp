#include "core/model/gemm.hpp"

#include <gtest/gtest.h>

#include "core/model/families.hpp"
#include "core/model/hf_config.hpp"

namespace fsdp {
namespace {

constexpr Batch batch{.sequence = 16, .micro_batch = 2, .accumulate = 1};

Module module(std::string class_name, std::vector<std::int64_t> shape, bool trainable) {
  return {.path = "m",
          .class_name = std::move(class_name),
          .parameters = {{.name = "weight",
                          .shape = std::move(shape),
                          .dtype = DType::f32,
                          .trainable = trainable,
                          .tied_to = {}}},
          .children = {},
          .attention = {}};
}

TEST(ForwardGemms, LinearStoresOutFirst) {
  EXPECT_EQ(forward_gemms(module("Linear", {160, 64}, true), batch),
            (std::vector<Gemm>{{1, 32, 160, 64}}));
}

TEST(ForwardGemms, Conv1DStoresInFirst) {
  EXPECT_EQ(forward_gemms(module("Conv1D", {64, 160}, true), batch),
            (std::vector<Gemm>{{1, 32, 160, 64}}));
}

TEST(ForwardGemms, EmbeddingsAndVectorsMultiplyNothing) {
  EXPECT_TRUE(forward_gemms(module("Embedding", {96, 64}, true), batch).empty());
  EXPECT_TRUE(forward_gemms(module("RMSNorm", {64}, true), batch).empty());
}

TEST(ForwardGemms, AttentionAddsScoresAndValues) {
  Module m{.path = "m",
           .class_name = "LlamaAttention",
           .parameters = {},
           .children = {},
           .attention = Attention{.heads = 4, .head_dim = 8}};
  EXPECT_EQ(forward_gemms(m, batch), (std::vector<Gemm>{{8, 16, 16, 8}, {8, 16, 8, 16}}));
  // Backward multiplies each operand's gradient once: twice the work.
  double forward = 0;
  double backward = 0;
  for (const Gemm& g : forward_gemms(m, batch)) {
    forward += flops(g).value;
  }
  for (const Gemm& g : backward_gemms(m, batch, true)) {
    backward += flops(g).value;
  }
  EXPECT_EQ(backward, 2 * forward);
}

TEST(BackwardGemms, DataAndWeightGradients) {
  const Gemm dgrad{1, 32, 64, 160};
  const Gemm wgrad{1, 160, 64, 32};
  EXPECT_EQ(backward_gemms(module("Linear", {160, 64}, true), batch, true),
            (std::vector<Gemm>{dgrad, wgrad}));
  EXPECT_EQ(backward_gemms(module("Linear", {160, 64}, true), batch, false),
            (std::vector<Gemm>{wgrad}));
  EXPECT_EQ(backward_gemms(module("Linear", {160, 64}, false), batch, true),
            (std::vector<Gemm>{dgrad}));
  EXPECT_TRUE(backward_gemms(module("Linear", {160, 64}, false), batch, false).empty());
}

TEST(ForwardGemms, ExpertsMultiplyTheirShareOfTheTokens) {
  Module experts = module("MixtralExperts", {8, 96, 64}, true);
  EXPECT_EQ(forward_gemms(experts, batch), (std::vector<Gemm>{{8, 32, 96, 64}}));
  experts.experts = Experts{.count = 8, .per_token = 2};
  EXPECT_EQ(forward_gemms(experts, batch), (std::vector<Gemm>{{8, 8, 96, 64}}));
  EXPECT_EQ(backward_gemms(experts, batch, true),
            (std::vector<Gemm>{{8, 8, 64, 96}, {8, 96, 64, 8}}));
  // Fewer visits than experts: a row is the least.
  experts.experts = Experts{.count = 8, .per_token = 1};
  EXPECT_EQ(forward_gemms(experts, {.sequence = 3, .micro_batch = 1}),
            (std::vector<Gemm>{{8, 1, 96, 64}}));
}

TEST(ForwardGemms, TablesOfPositionsMultiplyNothing) {
  EXPECT_TRUE(forward_gemms(module("ViTEmbeddings", {1, 197, 64}, true), batch).empty());
  EXPECT_TRUE(forward_gemms(module("PositionTable", {1, 197, 64}, true), batch).empty());
}

/// 2 layers of hidden 8, ffn 20, 4 heads of 2 of which 2 are keys and values; vocabulary 10.
/// 32 tokens in sequences of 16.
TEST(ModelFlops, OfALlamaByHand) {
  const ModelSpec model =
      llama("l", {.hidden = 8, .ffn = 20, .layers = 2, .heads = 4, .kv_heads = 2, .vocab = 10});
  const double linears = 2 * 32 * (8 * 8 + 2 * 4 * 8 + 8 * 8 + 3 * 8 * 20);
  const double attention = 4 * 2 * 16 * 16 * 4 * 2;
  const double layers = 2 * (linears + attention);
  const double head = 2 * 32 * 8 * 10;
  const ModelFlops total = model_flops(model, batch);
  EXPECT_EQ(total.forward.value, layers + head);
  EXPECT_EQ(total.backward.value, 2 * (layers + head));
  EXPECT_EQ(total.recompute.value, layers);
}

TEST(ModelFlops, OfAMixtureCountTheExpertsThatATokenVisits) {
  const ModelSpec model = read_hf_config(
      R"({"model_type": "mixtral", "hidden_size": 8, "intermediate_size": 20, "vocab_size": 10,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
          "num_local_experts": 8, "num_experts_per_tok": 2})");
  const double attention = 2 * 32 * (8 * 8 + 2 * 4 * 8 + 8 * 8) + 4 * 2 * 16 * 16 * 4 * 2;
  const double experts = 2 * 32 * 8 * 8 + 2 * (2 * 32) * 3 * 8 * 20;
  EXPECT_EQ(model_flops(model, batch).recompute.value, attention + experts);
}

TEST(ModelFlops, FrozenWeightsHaveNoWeightGradient) {
  ModelSpec model;
  model.root = module("Linear", {160, 64}, false);
  model.root.path = "";
  model.calls = {{.module = "", .input_requires_grad = true}};
  EXPECT_EQ(model_flops(model, batch).forward.value, 2.0 * 32 * 160 * 64);
  EXPECT_EQ(model_flops(model, batch).backward.value, 2.0 * 32 * 160 * 64);
  model.calls[0].input_requires_grad = false;
  EXPECT_EQ(model_flops(model, batch).backward.value, 0.0);
}

TEST(Flops, CountTwoAProductAndSum) { EXPECT_EQ(flops({3, 4, 5, 6}).value, 2.0 * 3 * 4 * 5 * 6); }

}  // namespace
}  // namespace fsdp
