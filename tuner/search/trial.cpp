#include "tuner/search/trial.hpp"

namespace fsdp {

namespace {

const Measured* step_of(const std::optional<Outcome>& outcome) {
  return outcome ? std::get_if<Measured>(&*outcome) : nullptr;
}

}  // namespace

const Measured* predicted_step(const Trial& trial) { return step_of(trial.predicted); }

const Measured* measured_step(const Trial& trial) { return step_of(trial.measured); }

std::string outcome_text(const Trial& trial) {
  if (trial.measured) {
    return to_text(*trial.measured);
  }
  if (!trial.dropped.empty()) {
    return trial.dropped;
  }
  return trial.predicted ? to_text(*trial.predicted) : "not looked at";
}

}  // namespace fsdp
