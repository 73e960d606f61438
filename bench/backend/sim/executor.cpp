#include "bench/backend/sim/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/backend/sim/backend.hpp"
#include "core/schedule/memory.hpp"
#include "core/sim/simulate.hpp"
#include "core/units/error.hpp"

namespace fsdp::sim {

namespace {

/// The simulation is deterministic: it runs once, in prepare, and run() hands out its timeline.
class SimStep final : public PreparedStep {
 public:
  SimStep(Timeline timeline, const Allocation& allocation)
      : timeline_(std::move(timeline)), allocation_(allocation) {}

  void run(Timeline& timeline) override {
    expects(timeline.spans.size() == timeline_.spans.size(),
            "the timeline was made by timeline_for() of this schedule");
    std::copy(timeline_.spans.begin(), timeline_.spans.end(), timeline.spans.begin());
    timeline.step = timeline_.step;
  }
  /// No data moves, so there is nothing to find; Capabilities::measures says so.
  std::optional<DataMismatch> run_verified() override { return std::nullopt; }
  Allocation allocation() const override { return allocation_; }

 private:
  Timeline timeline_;
  Allocation allocation_;
};

}  // namespace

SimExecutor::SimExecutor(const ClusterSpec& cluster)
    : cluster_(cluster),
      capabilities_{.backend = "sim",
                    .measures = false,
                    .gather_dtypes = {DType::f32, DType::bf16, DType::f16},
                    .reduce_dtypes = {DType::f32, DType::bf16, DType::f16},
                    .replicate_groups = true,
                    .compute = fmt::format("cost model {} ({})", cluster.name, cluster.origin)} {}

std::unique_ptr<PreparedStep> SimExecutor::prepare(const Schedule& schedule) {
  const Allocation allocation{.pools = layout_arenas(schedule).pool_bytes,
                              .peak_live = memory_report(schedule).transient_live};
  try {
    return std::make_unique<SimStep>(simulate(schedule, cluster_), allocation);
  } catch (const UsageError& error) {
    throw Unsupported(fmt::format("the simulator cannot run this schedule: {}", error.what()));
  }
}

std::unique_ptr<Executor> make_executor(const ClusterSpec& cluster) {
  return std::make_unique<SimExecutor>(cluster);
}

}  // namespace fsdp::sim
