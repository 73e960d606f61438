#include "tuner/evaluate/evaluator.hpp"

#include <fmt/format.h>

namespace fsdp {

namespace {

struct OutcomeText {
  std::string operator()(const Measured& measured) const {
    return measured.measurement ? "measured" : "simulated";
  }
  std::string operator()(const OutOfMemory& memory) const {
    return fmt::format("does not fit: needs {} a rank, {} available", to_text(memory.needed),
                       to_text(memory.available));
  }
  std::string operator()(const Infeasible& infeasible) const {
    return fmt::format("infeasible: {}", infeasible.why);
  }
  std::string operator()(const Failed& failed) const {
    return fmt::format("failed: {}", failed.why);
  }
};

}  // namespace

std::string to_text(const Outcome& outcome) { return std::visit(OutcomeText{}, outcome); }

}  // namespace fsdp
