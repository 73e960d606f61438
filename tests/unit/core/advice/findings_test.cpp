#include "core/advice/finding.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/schedule/memory.hpp"
#include "core/sim/assumed_cluster.hpp"
#include "core/sim/simulate.hpp"
#include "tests/support/plans.hpp"
#include "tests/unit/core/advice/advised.hpp"

namespace fsdp {
namespace {

using test::findings_of;
using test::recorded;
using test::with_id;

/// A waste that a recorded trace shows, its bytes by hand, and what the finding's remedy changes.
struct Case {
  std::string recording;
  std::string id;
  std::string unit;
  std::string parameter;
  std::int64_t bytes;
  std::function<void(RunConfig&)> remedy;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.id << " in " << c.recording;
}

// The llamas: 3 blocks of 43,136 elements, embedding and head of 96 x 64, last norm of 64; gathered
// in bf16 and reduced in f32.
constexpr std::int64_t block = 64 * 192 + 3 * 64 * 160 + 2 * 64;
constexpr std::int64_t table = 96 * 64;
constexpr std::int64_t whole = 3 * block + 2 * table + 64;

std::vector<Case> cases() {
  const auto keep = [](const char* unit) {
    return [=](RunConfig& c) { c.policy.reshard_units[unit] = Reshard::keep(); };
  };
  const auto keep_sharded = [](const char* unit) {
    return [=](RunConfig& c) { c.policy.keep_sharded_in_backward = {unit}; };
  };
  const auto wrap = [](const WrapRule& rule) {
    return [=](RunConfig& c) { c.policy.wrap = rule; };
  };
  return {
      // One gather and one reduction of everything.
      {"llama-none", "one_unit", "root", "", whole * (2 + 4), wrap(WrapBlock{})},
      // wte 50257 and wpe 1024 of 768, ln_f, over 1000 ranks: 51 and 2 rows, 1 and 1 elements.
      {"gpt2-w1000", "largest_root", "root", "", 1000 * (53 * 768 + 2) * (2 + 4),
       wrap(WrapTitan{})},
      // Two layers, each gathered twice and reduced once, minus what they hold.
      {"moe-w32", "padded_gather", "model.layers.0 .. 1 (2 alike)",
       "model.layers.0.block_sparse_moe.gate_up_proj", 2 * (1508544 - 397248) * (2 + 2 + 4),
       [](RunConfig& c) {
         c.policy.shard_dims = {{".*(gate_up|down)_proj", 1}};
       }},
      {"vit-w8", "padded_gather", "root", "encoder.pos_embedding", (34096 - 21418) * (2 + 4),
       [](RunConfig& c) {
         c.policy.shard_dims = {{"encoder\\.pos_embedding", 2}};
       }},
      {"llama-titan", "idle_embedding_gather", "model.embed_tokens", "model.embed_tokens.weight",
       table * 2, keep_sharded("model.embed_tokens")},
      {"llama-frozen-blocks", "prefetch_without_backward", "model.layers.1", "", block * 2,
       keep_sharded("model.layers.1")},
      {"llama-frozen-embed", "prefetch_without_backward", "model.embed_tokens", "", table * 2,
       keep_sharded("model.embed_tokens")},
      {"llama-titan-acc2", "stray_gather", "model.norm+lm_head", "", (table + 64) * 2,
       wrap(WrapBlock{})},
      {"llama-block", "freed_and_gathered_again", "model.layers.2", "", block * 2,
       keep("model.layers.2")},
      // The gather output of the block before, in bf16.
      {"llama-block", "three_buffers", "model.layers.1", "", block * 2,
       [](RunConfig& c) { c.policy.forward_prefetch = 1; }},
      // All of the all-gather of the three layers; the weight before is 12 elements of bf16 a rank.
      {"vit-w8", "misaligned_shard", "encoder.layers.0 .. 2 (3 alike)",
       "encoder.layers.0.ln_1.bias", 3 * 8 * 27960,
       [](RunConfig& c) { c.mesh = {.replicate = 2, .shard = 4}; }},
      // Half of every reduction.
      {"llama-block", "wide_reduction", "", "", whole * 4 / 2,
       [](RunConfig& c) { c.policy.reduce_dtype = DType::bf16; }},
  };
}

class Findings : public ::testing::TestWithParam<Case> {};

TEST_P(Findings, AreThereWithTheirCostAndGoWithTheirRemedy) {
  const Case& expected = GetParam();
  RunConfig config = recorded(expected.recording);
  const auto found = with_id(findings_of(config), expected.id);
  const auto same = [&](const Finding& f) {
    return f.unit == expected.unit &&
           (expected.parameter.empty() || f.parameter == expected.parameter);
  };
  const auto finding = std::find_if(found.begin(), found.end(), same);
  ASSERT_NE(finding, found.end()) << (found.empty()
                                          ? "none"
                                          : found.front().unit + " " + found.front().parameter);
  EXPECT_EQ(finding->bytes.value, expected.bytes);
  EXPECT_FALSE(finding->remedy.empty());
  expected.remedy(config);
  const auto left = with_id(findings_of(config), expected.id);
  EXPECT_EQ(std::count_if(left.begin(), left.end(), same), 0);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Findings, ::testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.recording + "_" + test.param.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::set<std::string> ids(const RunConfig& config) {
  std::set<std::string> out;
  for (const Finding& finding : findings_of(config)) {
    out.insert(finding.id);
  }
  return out;
}

using Ids = std::set<std::string>;

TEST(FindingsOf, APolicyWithoutWaste) {
  RunConfig config = recorded("llama-block");
  config.policy.reduce_dtype = DType::bf16;
  config.policy.forward_prefetch = 1;
  config.policy.reshard_units["model.layers.2"] = Reshard::keep();
  EXPECT_EQ(ids(config), Ids{});
}

TEST(FindingsOf, ABlockPlanHasOnlyWhatItsTraceShows) {
  EXPECT_EQ(ids(recorded("llama-block")),
            (Ids{"wide_reduction", "freed_and_gathered_again", "three_buffers"}));
}

TEST(FindingsOf, OneRankMovesNothingAndIsNotToldToSplit) {
  RunConfig config = recorded("llama-none");
  config.mesh = {.replicate = 1, .shard = 1};
  EXPECT_EQ(ids(config).count("one_unit"), 0U);
}

TEST(FindingsOf, ATiedTableIsReadInBackwardByTheHead) {
  EXPECT_EQ(ids(recorded("titan-tied")).count("idle_embedding_gather"), 0U);
  EXPECT_EQ(ids(recorded("gpt2-w8")).count("idle_embedding_gather"), 0U);
}

TEST(FindingsOf, AccumulationThatClearsTheOrderHasNoStrayGather) {
  RunConfig config = recorded("llama-titan-acc2");
  config.batch.accumulate = 1;
  EXPECT_EQ(ids(config).count("stray_gather"), 0U);
}

/// Gathers of a unit in a step's backward.
int backward_gathers(const RunConfig& config, const std::string& unit) {
  const Schedule schedule = test::schedule_of(config);
  return static_cast<int>(
      std::count_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) {
        return std::holds_alternative<AllGather>(op.work) && op.phase == Phase::backward &&
               schedule.plan[op.unit].name == unit;
      }));
}

TEST(Remedies, TakeTheWastedGatherOutOfTheStep) {
  RunConfig config = recorded("llama-titan");
  EXPECT_EQ(backward_gathers(config, "model.embed_tokens"), 1);
  config.policy.keep_sharded_in_backward = {"model.embed_tokens"};
  EXPECT_EQ(backward_gathers(config, "model.embed_tokens"), 0);
  config = recorded("llama-block");
  EXPECT_EQ(backward_gathers(config, "model.layers.2"), 1);
  config.policy.reshard_units["model.layers.2"] = Reshard::keep();
  EXPECT_EQ(backward_gathers(config, "model.layers.2"), 0);
}

TEST(Remedies, OneExplicitPrefetchCostsEqualUnitsNoMemory) {
  RunConfig config = recorded("llama-block");
  const Bytes implicit = memory_by_phase(test::schedule_of(config)).at(Phase::forward).total;
  config.policy.forward_prefetch = 1;
  EXPECT_EQ(memory_by_phase(test::schedule_of(config)).at(Phase::forward).total, implicit);
}

RunConfig config_of(ModelSpec model, FsdpPolicy policy, int ranks) {
  RunConfig config;
  config.model = std::move(model);
  config.policy = std::move(policy);
  config.policy.param_dtype = DType::bf16;
  config.mesh = DeviceMesh{.replicate = 1, .shard = ranks};
  config.batch = {.sequence = 16, .micro_batch = 1};
  return config;
}

TEST(SizeRemainder, TheDefaultThresholdOnLlamaTwo7b) {
  RunConfig config = config_of(test::llama2_7b(), test::policy_with(WrapSize{}, Profile::fsdp1), 8);
  const auto found = with_id(findings_of(config), "size_remainder");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unit, "model");
  EXPECT_NE(found[0].what.find("2147749888 elements"), std::string::npos) << found[0].what;
  EXPECT_EQ(found[0].bytes.value, 2'147'749'888 * (2 + 2 + 2));  // two gathers, one reduction
  config.policy.wrap = WrapBlock{};
  EXPECT_TRUE(with_id(findings_of(config), "size_remainder").empty());
  config.policy.wrap = WrapSize{.min_params = 200'000'000};  // layers and root
  EXPECT_TRUE(with_id(findings_of(config), "size_remainder").empty());
}

TEST(UnwrappableList, AcceleratesSizeRuleOnAListRaises) {
  FsdpPolicy policy;
  policy.preset =
      AcceleratePreset{.wrap = AccelerateWrap::size, .classes = {}, .min_params = 100'000'000};
  RunConfig config = config_of(test::llama3_8b(2), policy, 8);
  const auto found = with_id(findings_of(config), "unwrappable_list");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unit, "model.layers");
  config.policy.preset = AcceleratePreset{};
  EXPECT_TRUE(with_id(findings_of(config), "unwrappable_list").empty());
}

TEST(UntiedWeights, Fsdp1FlattensACopy) {
  RunConfig config =
      config_of(test::gpt2_small(), test::policy_with(WrapName{"lm_head"}, Profile::fsdp1), 8);
  const auto found = with_id(findings_of(config), "untied_weights");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes.value, 50257 * 768 * 2);
  config.policy.wrap = WrapBlock{};
  EXPECT_TRUE(with_id(findings_of(config), "untied_weights").empty());
}

TEST(ReducedFrozen, Fsdp1ReducesTheWholeFlatGradient) {
  FsdpPolicy policy = test::policy_with(WrapBlock{}, Profile::fsdp1);
  policy.fsdp1.use_orig_params = true;
  ModelSpec model = llama("frozen", {.hidden = 64,
                                     .ffn = 160,
                                     .layers = 1,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .vocab = 96,
                                     .tied = false});
  model.root.children[0].children[0].parameters[0].trainable = false;  // the embedding
  RunConfig config = config_of(model, policy, 4);
  const auto found = with_id(findings_of(config), "reduced_frozen");
  ASSERT_EQ(found.size(), 1U) << model.root.children[0].children[0].path;
  EXPECT_EQ(found[0].unit, "root");
  EXPECT_EQ(found[0].bytes.value, table * 2);
  config.policy.wrap = WrapName{"model\\.embed_tokens"};
  EXPECT_TRUE(with_id(findings_of(config), "reduced_frozen").empty());
}

TEST(FindingsOf, AUnitABlockOfTheLargestModelIsToldInAFewLines) {
  ModelSpec model = llama("405b", {.hidden = 16384,
                                   .ffn = 53248,
                                   .layers = 126,
                                   .heads = 128,
                                   .kv_heads = 8,
                                   .vocab = 128256,
                                   .tied = false});
  const auto found = findings_of(config_of(model, test::policy_with(WrapTitan{}), 16384));
  EXPECT_LT(found.size(), 12U);
  const auto padded = with_id(found, "padded_gather");
  ASSERT_EQ(padded.size(), 1U);
  EXPECT_EQ(padded[0].unit, "model.layers.0 .. 125 (126 alike)");
}

TEST(FindingsOf, TimesAreThoseOfTheOpsThatAreWasted) {
  const RunConfig config = recorded("llama-titan");
  const Schedule schedule = test::schedule_of(config);
  const auto times = op_costs(schedule, assumed_cluster(schedule));
  const auto found = with_id(findings({config.model, schedule, times}), "idle_embedding_gather");
  ASSERT_EQ(found.size(), 1U);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (std::holds_alternative<AllGather>(op.work) && op.phase == Phase::backward &&
        schedule.plan[op.unit].name == "model.embed_tokens") {
      EXPECT_EQ(found[0].time, times[i]);
    }
  }
}

}  // namespace
}  // namespace fsdp
