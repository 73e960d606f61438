// Runs schedules on a cost model instead of a machine.
#pragma once

#include "bench/executor.hpp"
#include "core/model/cluster_spec.hpp"

namespace fsdp::sim {

class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(const ClusterSpec& cluster);
  const Capabilities& capabilities() const override { return capabilities_; }
  /// Throws Unsupported when the cluster has no curve for a collective of the schedule.
  std::unique_ptr<PreparedStep> prepare(const Schedule& schedule) override;

 private:
  ClusterSpec cluster_;
  Capabilities capabilities_;
};

}  // namespace fsdp::sim
