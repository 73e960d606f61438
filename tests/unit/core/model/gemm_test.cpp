#include "core/model/gemm.hpp"

#include <gtest/gtest.h>

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

TEST(Flops, CountTwoAProductAndSum) { EXPECT_EQ(flops({3, 4, 5, 6}).value, 2.0 * 3 * 4 * 5 * 6); }

}  // namespace
}  // namespace fsdp
