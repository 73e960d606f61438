// Adds up what ops cost, whole or in part, for one unit or for each run of units that are alike.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/advice/finding.hpp"
#include "core/advice/unit_runs.hpp"

namespace fsdp {

class Bill {
 public:
  explicit Bill(const PlanEvidence& evidence) : evidence_(evidence) {}

  /// `part` of the op is waste: 1 for all of it.
  void add(OpId op, double part = 1);
  /// All collectives of `unit`.
  void add_collectives(UnitId unit);
  int count() const { return count_; }
  /// Writes the cost into `finding`.
  Finding on(Finding finding) const;

 private:
  const PlanEvidence& evidence_;
  int count_ = 0;
  double bytes_ = 0;
  double time_ns_ = 0;
};

/// A bill a unit; units that are alike become one entry.
class BillByRun {
 public:
  explicit BillByRun(const PlanEvidence& evidence)
      : evidence_(evidence), marked_(evidence.schedule.plan.units.size()) {}

  void add(OpId op, double part = 1) {
    marked_[evidence_.schedule[op].unit.index()].emplace_back(op, part);
  }
  /// Units that were added, by run, with the run's bill.
  std::vector<std::pair<UnitRun, Bill>> bills() const;

 private:
  const PlanEvidence& evidence_;
  std::vector<std::vector<std::pair<OpId, double>>> marked_;
};

}  // namespace fsdp
