// A plan's report of a small model, for tests of what is said about plans.
#pragma once

#include "core/record/plan_document.hpp"
#include "core/sim/assumed_cluster.hpp"
#include "core/sim/simulate.hpp"

namespace fsdp::test {

/// `model` and `schedule` must outlive the report.
inline PlanReport report_of(const ModelSpec& model, const Schedule& schedule,
                            std::optional<Bytes> limit = std::nullopt) {
  const ClusterSpec cluster = assumed_cluster(schedule);
  const std::vector<Nanoseconds> times = op_costs(schedule, cluster);
  return {.model = model,
          .schedule = schedule,
          .memory = memory_budget(model, schedule, limit),
          .alignment = alignment_report(schedule),
          .findings = findings({model, schedule, times}),
          .times = cluster.origin};
}

}  // namespace fsdp::test
