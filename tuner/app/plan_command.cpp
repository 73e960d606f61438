#include <fmt/format.h>

#include <cstdio>

#include "core/record/plan_document.hpp"
#include "tuner/app/commands.hpp"
#include "tuner/app/runner.hpp"

namespace fsdp {

ExitCode plan_command(const Invocation& invocation, const RunConfig& config) {
  const WrapPlan plan = plan_units(config.model, config.policy, planned_mesh(config), config.batch);
  const Schedule schedule = build_schedule(plan, config.policy, config.batch);
  fmt::print("{}", invocation.output == Output::json ? plan_json(schedule)
                                                     : plan_text(schedule, config.model));
  std::fflush(stdout);
  return ExitCode::ok;
}

}  // namespace fsdp
