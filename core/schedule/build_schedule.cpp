#include <fmt/format.h>

#include "core/model/releases.hpp"
#include "core/schedule/fsdp1.hpp"
#include "core/schedule/fsdp2.hpp"
#include "core/schedule/schedule.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

void check_fsdp1(const WrapPlan& plan) {
  const ShardingStrategy sharding = plan.policy.fsdp1.sharding;
  const bool hybrid = sharding == ShardingStrategy::hybrid_shard ||
                      sharding == ShardingStrategy::hybrid_shard_zero2;
  if (plan.mesh.replicate > 1 && !hybrid) {
    throw UsageError(fmt::format(
        "policy.sharding: FSDP1 shards over all ranks unless told otherwise; with {} replicas use "
        "hybrid_shard or hybrid_shard_zero2, or replicate: 1",
        plan.mesh.replicate));
  }
  if (plan.batch.sync == GradientSync::reduce_scatter) {
    throw UsageError(
        "batch.sync: FSDP1 has no reduce-scatter without its all-reduce; use last or every");
  }
}

void check_fsdp2(const FsdpPolicy& policy) {
  const bool knobs = policy.reduce_scatter_buffers > 1 || policy.separate_reduce_scatter_group;
  if (policy.reduce_scatter_buffers < 1 ||
      (knobs && policy.version < since::reduce_scatter_knobs)) {
    throw UsageError(fmt::format(
        "policy.reduce_scatter_buffers: {}{} with version {}; at least 1, and more than 1 or a "
        "separate group from PyTorch {} on",
        policy.reduce_scatter_buffers,
        policy.separate_reduce_scatter_group ? ", separate_reduce_scatter_group" : "",
        to_text(policy.version), to_text(since::reduce_scatter_knobs)));
  }
}

}  // namespace

Schedule build_schedule(const WrapPlan& plan) {
  const FsdpPolicy& policy = plan.policy;
  const Version oldest = oldest_release(policy.profile);
  if (policy.version < oldest || policy.version > newest_release) {
    throw UsageError(fmt::format("policy.version: {}; this release knows the rules of {} to {}",
                                 to_text(policy.version), to_text(oldest),
                                 to_text(newest_release)));
  }
  if (policy.profile == Profile::fsdp1) {
    check_fsdp1(plan);
    return build_fsdp1(plan);
  }
  check_fsdp2(policy);
  return Fsdp2(plan).build();
}

}  // namespace fsdp
