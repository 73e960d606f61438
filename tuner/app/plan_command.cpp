#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "core/record/folded_schedule.hpp"
#include "core/record/plan_document.hpp"
#include "core/sim/assumed_cluster.hpp"
#include "core/sim/simulate.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/app/runner.hpp"

namespace fsdp {
namespace {

struct PricedOps {
  std::vector<Nanoseconds> times;
  std::string origin;
};

/// By the run file's cluster, or by assumed figures where it names none or the cluster knows no
/// group of this size.
PricedOps priced(const RunConfig& config, const Schedule& schedule) {
  std::string why;
  if (config.cluster) {
    try {
      return {
          op_costs(schedule, *config.cluster),
          fmt::format("times from cluster {}: {}", config.cluster->name, config.cluster->origin)};
    } catch (const UsageError& error) {
      why = fmt::format("; {}", error.what());
    }
  }
  const ClusterSpec assumed = assumed_cluster(schedule);
  return {op_costs(schedule, assumed), "times " + assumed.origin + why};
}

PlanReport report_of(const RunConfig& config, const Schedule& schedule) {
  PricedOps ops = priced(config, schedule);
  return {.model = config.model,
          .schedule = schedule,
          .memory = memory_budget(config.model, schedule, config.memory_limit),
          .alignment = alignment_report(schedule),
          .findings = findings({config.model, schedule, ops.times}),
          .times = std::move(ops.origin)};
}

}  // namespace

ExitCode plan_command(const Invocation& invocation, const RunConfig& config) {
  const WrapPlan plan = plan_units(config.model, config.policy, planned_mesh(config), config.batch);
  const Schedule schedule = build_schedule(plan);
  switch (invocation.output) {
    case Output::json:
      fmt::print("{}", plan_json(report_of(config, schedule)));
      break;
    case Output::schedule:
      fmt::print("{}", folded_text(schedule));
      break;
    case Output::text:
      fmt::print("{}", plan_text(report_of(config, schedule)));
      break;
  }
  std::fflush(stdout);
  return ExitCode::ok;
}

}  // namespace fsdp
