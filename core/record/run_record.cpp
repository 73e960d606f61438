// Timelines as a person reads them: names instead of numbers, and only what takes time.
#include "core/record/run_record.hpp"

#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// Allocations and frees happen on the host, and the end of the step is an instant: bars of no
/// width would only hide the ones that matter.
bool takes_time(const Op& op) {
  return !std::holds_alternative<Allocate>(op.work) && !std::holds_alternative<Free>(op.work) &&
         !std::holds_alternative<StepEnd>(op.work);
}

}  // namespace

std::vector<TimelineRow> timeline_rows(const Schedule& schedule, const Timeline& timeline) {
  expects(timeline.spans.size() == schedule.ops.size(),
          "a timeline has one span for every op of its schedule");
  std::vector<TimelineRow> rows;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (!takes_time(op)) {
      continue;
    }
    rows.push_back({.stream = std::string(to_text(op.stream, schedule.plan.policy.profile)),
                    .operation = std::string(name_of(op)),
                    .unit = op.unit.valid() ? schedule.plan[op.unit].name : "",
                    .phase = std::string(to_text(op.phase)),
                    .start_ns = timeline.spans[i].start_ns,
                    .end_ns = timeline.spans[i].end_ns});
  }
  return rows;
}

}  // namespace fsdp
