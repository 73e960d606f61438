// What `fsdp-tune plan` prints: a summary for people, and the JSON that tests compare with recorded
// PyTorch traces.
#pragma once

#include <string>
#include <vector>

#include "core/advice/alignment.hpp"
#include "core/advice/finding.hpp"
#include "core/advice/memory_budget.hpp"
#include "core/model/model_spec.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

struct PlanReport {
  const ModelSpec& model;
  const Schedule& schedule;
  MemoryBudget memory;
  std::vector<CollectiveAlignment> alignment;
  std::vector<Finding> findings;
  std::string times;  ///< where the times of findings come from
};

/// Units, collectives in issue order, memory by phase, the host's order of operations and waits
/// with the keys of tests/golden (docs/ARCHITECTURE.md names them); findings, memory of a rank and
/// alignment beside them.
std::string plan_json(const PlanReport& report);
/// Units, collectives by kind, memory, findings, alignment: a page a person reads. Units that are
/// alike are one line.
std::string plan_text(const PlanReport& report);

}  // namespace fsdp
