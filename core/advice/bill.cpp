#include "core/advice/bill.hpp"

#include <cmath>

namespace fsdp {

void Bill::add(OpId op, double part) {
  const Schedule& schedule = evidence_.schedule;
  count_ += 1;
  bytes_ += part * static_cast<double>(cost_bytes(schedule, schedule[op]).value);
  if (!evidence_.op_times.empty()) {
    time_ns_ += part * static_cast<double>(evidence_.op_times[op.index()].value);
  }
}

void Bill::add_collectives(UnitId unit) {
  const auto& ops = evidence_.schedule.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].unit == unit && is_collective(ops[i])) {
      add({static_cast<std::int32_t>(i)});
    }
  }
}

Finding Bill::on(Finding finding) const {
  finding.bytes = {std::llround(bytes_)};
  if (!evidence_.op_times.empty()) {
    finding.time = Nanoseconds{std::llround(time_ns_)};
  }
  return finding;
}

std::vector<std::pair<UnitRun, Bill>> BillByRun::bills() const {
  std::vector<std::pair<UnitRun, Bill>> out;
  const WrapPlan& plan = evidence_.schedule.plan;
  for (const UnitRun& run : unit_runs(plan)) {
    std::vector<UnitId> units;
    Bill bill(evidence_);
    for (const UnitId unit : run.units) {
      for (const auto& [op, part] : marked_[unit.index()]) {
        bill.add(op, part);
      }
      if (!marked_[unit.index()].empty()) {
        units.push_back(unit);
      }
    }
    if (!units.empty()) {
      out.emplace_back(run_of(plan, std::move(units)), bill);
    }
  }
  return out;
}

}  // namespace fsdp
