#include "core/model/activations.hpp"

#include <gtest/gtest.h>

#include "core/model/families.hpp"
#include "core/model/hf_config.hpp"

namespace fsdp {
namespace {

constexpr Batch batch{.sequence = 16, .micro_batch = 2};
constexpr std::int64_t tokens = 32;

Bytes bytes(std::int64_t elements, std::int64_t sums = 0) {
  return bytes_of(elements, DType::bf16) + bytes_of(sums, DType::f32);
}

TEST(Activations, OfAGpt2BlockAre32BytesATokenAndWidth) {
  const ModelSpec model = gpt2("g", {.hidden = 24, .layers = 3, .heads = 2, .vocab = 10});
  const Activations kept = activations(model, batch, DType::bf16, Checkpointing::none);
  // Two norms and two products read h; queries, keys, values are 3h, attention's output h; the
  // activation function's input and output are 4h each: 16 h. And a sum a head, in f32.
  EXPECT_EQ(kept.blocks, bytes(3 * tokens * 16 * 24, 3 * tokens * 2));
  EXPECT_EQ(kept.one_block, Bytes{});
  // The last norm's input and the head's.
  EXPECT_EQ(kept.outside, bytes(tokens * 2 * 24));
  EXPECT_EQ(kept.logits, bytes(tokens * 10) + bytes_of(2 * tokens * 10, DType::f32));
}

TEST(Activations, OfALlamaBlockByHand) {
  const ModelSpec model =
      llama("l", {.hidden = 24, .ffn = 40, .layers = 2, .heads = 4, .kv_heads = 2, .vocab = 10});
  const Activations kept = activations(model, batch, DType::bf16, Checkpointing::none);
  // h: two norms, queries' input (shared by keys and values), o's, gate's (shared by up); q is h, k
  // and v h/2 each; gate, its activation, up and down's input are ffn each.
  EXPECT_EQ(kept.blocks, bytes(2 * tokens * (5 * 24 + 2 * 24 + 4 * 40), 2 * tokens * 4));
}

TEST(Activations, FullCheckpointingKeepsABlocksInputAndOneBlockInTurn) {
  const ModelSpec model = gpt2("g", {.hidden = 24, .layers = 3, .heads = 2, .vocab = 10});
  const Activations kept = activations(model, batch, DType::bf16, Checkpointing::full);
  EXPECT_EQ(kept.blocks, bytes(3 * tokens * 24));
  EXPECT_EQ(kept.one_block, bytes(tokens * 16 * 24, tokens * 2));
}

TEST(Activations, SelectiveCheckpointingSparesAttentionsSums) {
  const ModelSpec model = gpt2("g", {.hidden = 24, .layers = 3, .heads = 2, .vocab = 10});
  EXPECT_EQ(activations(model, batch, DType::bf16, Checkpointing::selective).blocks,
            bytes(3 * tokens * 16 * 24));
}

TEST(Activations, OfRoutedExpertsCountTheTokensThatVisit) {
  const ModelSpec model = read_hf_config(
      R"({"model_type": "mixtral", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 10,
          "num_local_experts": 4, "num_experts_per_tok": 2})");
  const Activations kept = activations(model, batch, DType::bf16, Checkpointing::none);
  // Attention 2h + (q k v) 2h, norms 2h, router h; of the 2 x 32 visits h in, 2f out of the fused
  // gate and up, f from the activation, f into down.
  const std::int64_t visits = 2 * tokens;
  EXPECT_EQ(kept.blocks, bytes(tokens * 7 * 16 + visits * (16 + 4 * 24), tokens * 4));
}

}  // namespace
}  // namespace fsdp
