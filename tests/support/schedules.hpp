// Schedules of a small Llama, for tests that need a real one.
#pragma once

#include "core/model/families.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp::test {

inline ModelSpec small_llama(int layers) {
  return llama("small", {.hidden = 64,
                         .ffn = 160,
                         .layers = layers,
                         .heads = 4,
                         .kv_heads = 2,
                         .vocab = 96,
                         .tied = false});
}

/// PyTorch's defaults with bf16 parameters and f32 reduction.
inline FsdpPolicy mixed_precision() {
  FsdpPolicy policy;
  policy.param_dtype = DType::bf16;
  policy.reduce_dtype = DType::f32;
  return policy;
}

inline Schedule schedule_of(const ModelSpec& model, const FsdpPolicy& policy, int ranks) {
  const Batch batch{.sequence = 16, .micro_batch = 2, .accumulate = 1};
  return build_schedule(plan_units(model, policy, {.replicate = 1, .shard = ranks}, batch));
}

}  // namespace fsdp::test
