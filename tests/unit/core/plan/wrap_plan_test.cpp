#include "core/plan/wrap_plan.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/model/families.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

ModelSpec small_llama(bool tied) {
  return llama("small", {.hidden = 64,
                         .ffn = 160,
                         .layers = 5,
                         .heads = 4,
                         .kv_heads = 2,
                         .vocab = 96,
                         .tied = tied});
}

WrapPlan plan(const ModelSpec& model, WrapRule rule, int ranks) {
  FsdpPolicy policy;
  policy.wrap = std::move(rule);
  return plan_units(model, policy, {.replicate = 1, .shard = ranks},
                    {.sequence = 16, .micro_batch = 2});
}

std::vector<std::string> names(const WrapPlan& plan) {
  std::vector<std::string> out;
  for (const FsdpUnit& unit : plan.units) {
    out.push_back(unit.name);
  }
  return out;
}

std::int64_t total(const WrapPlan& plan) {
  std::int64_t sum = 0;
  for (const FsdpUnit& unit : plan.units) {
    sum += unit.numel;
  }
  return sum;
}

TEST(WrapPlan, ListsUnitsInOrderOfFirstUse) {
  EXPECT_EQ(names(plan(small_llama(false), WrapEvery{2}, 8)),
            (std::vector<std::string>{"root", "model.layers.0+model.layers.1",
                                      "model.layers.2+model.layers.3", "model.layers.4"}));
}

TEST(WrapPlan, TitanGivesEmbeddingAndHeadUnitsOfTheirOwn) {
  const auto units = names(plan(small_llama(false), WrapTitan{}, 8));
  EXPECT_EQ(units.front(), "model.embed_tokens");
  EXPECT_EQ(units.back(), "model.norm+lm_head");
  EXPECT_EQ(units.size(), 7U);
}

TEST(WrapPlan, TitanPutsTiedWeightsIntoOneUnit) {
  const auto units = names(plan(small_llama(true), WrapTitan{}, 8));
  EXPECT_EQ(units.front(), "model.embed_tokens+model.norm+lm_head");
  EXPECT_EQ(units.size(), 6U);
}

TEST(WrapPlan, EveryRuleOwnsEveryParameterOnce) {
  for (const bool tied : {false, true}) {
    const ModelSpec model = small_llama(tied);
    for (const WrapRule& rule : std::vector<WrapRule>{WrapNone{}, WrapBlock{}, WrapTitan{},
                                                      WrapEvery{3}, WrapClass{{"LlamaMLP"}}}) {
      EXPECT_EQ(total(plan(model, rule, 7)), parameter_total(model)) << to_text(rule);
    }
  }
}

TEST(WrapPlan, PadsDimensionZeroOfEachParameter) {
  const WrapPlan p = plan(small_llama(false), WrapBlock{}, 7);
  const UnitParameter& query = p.units[1].parameters.front();  // 64 x 64 over 7 ranks: 10 rows each
  EXPECT_EQ(query.shard_numel, 10 * 64);
  EXPECT_EQ(query.padded_numel, 70 * 64);
}

TEST(WrapPlan, LlamaThreeBlockOverTwentyFourRanksPadsAsPyTorchDoes) {
  const ModelSpec model = llama("8b", {.hidden = 4096,
                                       .ffn = 14336,
                                       .layers = 1,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .vocab = 128256,
                                       .tied = false});
  const WrapPlan p = plan(model, WrapBlock{}, 24);
  EXPECT_EQ(p.units[1].numel, 218'112'000);
  EXPECT_EQ(p.units[1].shard_numel, 9'103'702);
  EXPECT_EQ(p.units[1].padded_numel, 218'488'848);
  EXPECT_EQ(p.units[0].padded_numel, 1'050'677'256);
}

TEST(WrapPlan, RootIsKeptUnlessToldOtherwise) {
  FsdpPolicy policy;
  const DeviceMesh mesh{.replicate = 1, .shard = 4};
  const auto root = [&] {
    return plan_units(small_llama(false), policy, mesh, {}).units.front().reshard_after_forward;
  };
  EXPECT_EQ(root(), Reshard::keep());
  policy.root_reshard = true;
  EXPECT_EQ(root(), Reshard::free());
  policy.root_reshard.reset();
  policy.reshard_after_forward = {4};  // the whole group is the same as true
  EXPECT_EQ(root(), Reshard::free());
}

TEST(WrapPlan, TraceNests) {
  const WrapPlan p = plan(small_llama(false), WrapEvery{2}, 4);
  int open = 0;
  for (std::size_t i = 0; i < p.trace.size(); ++i) {
    open += p.trace[i].kind == TraceStep::Kind::enter  ? 1
            : p.trace[i].kind == TraceStep::Kind::exit ? -1
                                                       : 0;
    EXPECT_GE(open, 0);
  }
  EXPECT_EQ(open, 0);
}

TEST(WrapPlan, OnlyUnitsBehindTheEmbeddingSeeGradientsAtTheirInputs) {
  const WrapPlan p = plan(small_llama(false), WrapTitan{}, 4);
  for (const TraceStep& step : p.trace) {
    if (step.kind == TraceStep::Kind::enter) {
      EXPECT_EQ(step.requires_grad, p[step.unit].name != "model.embed_tokens");
    }
  }
}

TEST(WrapPlan, ATiedWeightGetsItsGradientAtItsFirstUseOnly) {
  // Autograd delivers the sum of both uses after the embedding's backward, the last in backward.
  const WrapPlan p = plan(small_llama(true), WrapBlock{}, 4);
  int steps = 0;
  const TraceStep* first = nullptr;
  for (const TraceStep& step : p.trace) {
    for (const int index : step.gradients) {
      if (p[step.unit].parameters[static_cast<std::size_t>(index)].path ==
          "model.embed_tokens.weight") {
        ++steps;
        first = &step;
      }
    }
  }
  EXPECT_EQ(steps, 1);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->forward.empty());  // the embedding, not the head's product
}

void expect_usage_error(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    FAIL() << "no error; expected one with: " << part;
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(WrapPlan, NamesWhatIsWrong) {
  const ModelSpec model = small_llama(false);
  expect_usage_error([&] { plan(model, WrapGroups{{{"model.layer.0"}}}, 2); },
                     "no module 'model.layer.0'");
  expect_usage_error(
      [&] {
        plan(model, WrapGroups{{{"model.norm"}, {"model.norm"}}}, 2);
      },
      "two units");
  expect_usage_error([&] { plan(model, WrapEvery{0}, 2); }, "at least 1");
  expect_usage_error([&] { plan(model, WrapClass{{"Conv"}}, 2); },
                     "no module of small has class Conv");
  expect_usage_error([&] { plan(small_llama(true), WrapGroups{{{"model.embed_tokens"}}}, 2); },
                     "tied to 'model.embed_tokens.weight'");
  expect_usage_error([&] { plan(model, WrapBlock{}, 0); }, "mesh");
}

}  // namespace
}  // namespace fsdp
