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

std::vector<SmallPlan> wide_plans() {
  std::vector<SmallPlan> plans;
  const auto add = [&](const std::string& name, const auto& change) {
    SmallPlan plan{.name = name, .model = small_llama(), .policy = {}};
    plan.policy.param_dtype = DType::bf16;
    plan.policy.reduce_dtype = DType::f32;
    change(plan);
    plans.push_back(std::move(plan));
  };
  const auto add_fsdp1 = [&](const std::string& name, const auto& change) {
    add(name, [&](SmallPlan& plan) {
      plan.policy.profile = Profile::fsdp1;
      change(plan);
    });
  };
  add("hybrid", [](SmallPlan& p) { p.replicate = 2; });
  add("submesh", [](SmallPlan& p) { p.policy.reshard_after_forward = {2}; });
  add("accumulate_last", [](SmallPlan& p) { p.batch.accumulate = 2; });
  add("accumulate_every", [](SmallPlan& p) {
    p.batch.accumulate = 2;
    p.batch.sync = GradientSync::every;
  });
  add("accumulate_hybrid", [](SmallPlan& p) {
    p.replicate = 2;
    p.batch.accumulate = 2;
    p.batch.sync = GradientSync::reduce_scatter;
  });
  add("offload", [](SmallPlan& p) { p.policy.cpu_offload = true; });
  add("f16_reduce", [](SmallPlan& p) { p.policy.reduce_dtype = DType::f16; });
  add("second_group", [](SmallPlan& p) { p.policy.separate_reduce_scatter_group = true; });
  add("other_dimension", [](SmallPlan& p) { p.policy.shard_dims = {{".*q_proj.weight", 1}}; });
  add_fsdp1("fsdp1", [](SmallPlan&) {});
  add_fsdp1("fsdp1_post", [](SmallPlan& p) {
    p.policy.fsdp1.backward_prefetch = BackwardPrefetch::post;
    p.policy.fsdp1.forward_prefetch = true;
  });
  add_fsdp1("fsdp1_zero2", [](SmallPlan& p) {
    p.policy.fsdp1.sharding = ShardingStrategy::shard_grad_op;
    p.policy.fsdp1.use_orig_params = true;
  });
  add_fsdp1("fsdp1_hybrid", [](SmallPlan& p) {
    p.replicate = 2;
    p.policy.fsdp1.sharding = ShardingStrategy::hybrid_shard;
  });
  add_fsdp1("fsdp1_no_sync", [](SmallPlan& p) { p.batch.accumulate = 2; });
  return plans;
}

Schedule schedule_of(const SmallPlan& plan, int ranks) {
  const DeviceMesh mesh{.replicate = plan.replicate, .shard = ranks / plan.replicate};
  return build_schedule(plan_units(plan.model, plan.policy, mesh, plan.batch));
}

}  // namespace fsdp::test
