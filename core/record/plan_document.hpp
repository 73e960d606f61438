// What `fsdp-tune plan` prints: a summary for people, and the JSON that tests compare with recorded
// PyTorch traces.
#pragma once

#include <string>

#include "core/model/model_spec.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Units, collectives in issue order, memory by phase and the host's order of operations and waits,
/// with the keys of tests/golden (docs/ARCHITECTURE.md names them).
std::string plan_json(const Schedule& schedule);
/// Units, collectives by kind, memory, padding: a page a person reads.
std::string plan_text(const Schedule& schedule, const ModelSpec& model);

}  // namespace fsdp
