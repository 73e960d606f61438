// A deterministic event simulation of a schedule. Integer nanoseconds; the same input gives the
// same timeline.
#pragma once

#include "core/model/cluster_spec.hpp"
#include "core/record/timeline.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Time of each op of a schedule on a cluster, without contention between ops.
/// Throws UsageError naming the collective when the cluster has no curve for it.
std::vector<Nanoseconds> op_costs(const Schedule& schedule, const ClusterSpec& cluster);

/// An op starts when the host has issued it, the op before it on its stream has ended, all ops in
/// `after` have ended and, for a collective, the collective issued before it on its communicator
/// has ended.
Timeline simulate(const Schedule& schedule, const ClusterSpec& cluster);
/// The same with the cost of every op given.
Timeline simulate(const Schedule& schedule, const std::vector<Nanoseconds>& costs,
                  Nanoseconds issue_cost);

}  // namespace fsdp
