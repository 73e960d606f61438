#include <fmt/format.h>

#include "core/schedule/fsdp2.hpp"
#include "core/schedule/schedule.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

constexpr Version first_version{2, 8};
constexpr Version last_version{2, 14};
constexpr Version buffers_since{2, 13};

void check(const WrapPlan& plan, const FsdpPolicy& policy, const Batch& batch) {
  if (policy.version < first_version || policy.version > last_version) {
    throw UsageError(fmt::format("policy.version: {}; this release knows the rules of {} to {}",
                                 to_text(policy.version), to_text(first_version),
                                 to_text(last_version)));
  }
  if (policy.reduce_scatter_buffers < 1 ||
      (policy.reduce_scatter_buffers > 1 && policy.version < buffers_since)) {
    throw UsageError(fmt::format(
        "policy.reduce_scatter_buffers: {} with version {}; at least 1, and more than 1 from "
        "PyTorch {} on",
        policy.reduce_scatter_buffers, to_text(policy.version), to_text(buffers_since)));
  }
  if (plan.mesh.replicate > 1) {
    throw UsageError(
        "mesh.replicate: hybrid sharding (more than 1 replica) is not in this release; use "
        "replicate: 1");
  }
  if (batch.accumulate > 1) {
    throw UsageError(
        "batch.accumulate: gradient accumulation is not in this release; use accumulate: 1");
  }
  for (const FsdpUnit& unit : plan.units) {
    if (unit.reshard_after_forward.to > 1) {
      throw UsageError(
          fmt::format("unit {}: reshard_after_forward {} (a sub-group) is not in this release; use "
                      "true or false",
                      unit.name, unit.reshard_after_forward.to));
    }
  }
}

}  // namespace

Schedule build_schedule(const WrapPlan& plan, const FsdpPolicy& policy, const Batch& batch) {
  check(plan, policy, batch);
  return Fsdp2(plan, policy).build();
}

}  // namespace fsdp
