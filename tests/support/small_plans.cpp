#include "tests/support/small_plans.hpp"

#include "core/model/families.hpp"

namespace fsdp::test {
namespace {

ModelSpec small_llama() {
  return llama("small llama", {.hidden = 20,
                               .ffn = 27,
                               .layers = 4,
                               .heads = 2,
                               .kv_heads = 1,
                               .vocab = 37,
                               .tied = false});
}

/// Fewer positions than ranks, so that some ranks hold nothing but padding.
ModelSpec small_gpt2() {
  return gpt2("small gpt2", {.hidden = 18, .layers = 3, .heads = 2, .vocab = 41, .positions = 2});
}

}  // namespace

std::vector<SmallPlan> small_plans() {
  std::vector<SmallPlan> plans;
  const auto add = [&](const std::string& name, const ModelSpec& model, FsdpPolicy policy) {
    plans.push_back({.name = name, .model = model, .policy = std::move(policy)});
  };
  const ModelSpec model = small_llama();
  const auto policy = [](const WrapRule& wrap) {
    FsdpPolicy made;
    made.wrap = wrap;
    made.param_dtype = DType::bf16;
    made.reduce_dtype = DType::f32;
    return made;
  };
  add("block", model, policy(WrapBlock{}));
  add("every_2", model, policy(WrapEvery{2}));
  add("titan", model, policy(WrapTitan{}));
  add("none", model, policy(WrapNone{}));
  add("uneven_groups", model,
      policy(WrapGroups{{{"model.layers.0"},
                         {"model.layers.1", "model.layers.2"},
                         {"model.layers.3", "model.norm"}}}));
  add("tied_block", small_gpt2(), policy(WrapBlock{}));
  add("tied_titan", small_gpt2(), policy(WrapTitan{}));

  FsdpPolicy keep = policy(WrapBlock{});
  keep.reshard_after_forward = Reshard::keep();
  add("keep", model, keep);

  FsdpPolicy prefetch = policy(WrapBlock{});
  prefetch.forward_prefetch = 2;
  prefetch.backward_prefetch = 2;
  add("prefetch_2_2", model, prefetch);

  FsdpPolicy f32 = policy(WrapBlock{});
  f32.param_dtype.reset();
  f32.reduce_dtype.reset();
  add("f32", model, f32);

  FsdpPolicy bf16_reduce = policy(WrapBlock{});
  bf16_reduce.reduce_dtype = DType::bf16;
  add("bf16_reduce", small_gpt2(), bf16_reduce);

  FsdpPolicy factor = bf16_reduce;
  factor.gradient_divide_factor = 8.0;
  factor.reduce_scatter_buffers = 2;
  add("premul_2_buffers", model, factor);

  FsdpPolicy older = policy(WrapBlock{});
  older.version = {2, 8};
  add("release_2_8", model, older);
  return plans;
}

Schedule schedule_of(const SmallPlan& plan, int ranks) {
  const DeviceMesh mesh{.replicate = 1, .shard = ranks};
  return build_schedule(plan_units(plan.model, plan.policy, mesh, plan.batch), plan.policy,
                        plan.batch);
}

}  // namespace fsdp::test
