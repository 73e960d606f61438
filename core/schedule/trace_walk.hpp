// Parts of the walk over a trace that all profiles share.
#pragma once

#include <iterator>
#include <vector>

#include "core/plan/wrap_plan.hpp"

namespace fsdp {

using TraceSteps = std::vector<TraceStep>;

/// Backward's way over a run of exits. Units whose outputs are one tensor have their hooks on that
/// tensor, in the order they were left in, the innermost first. Calls `hook` for each that a
/// gradient reaches and returns the last exit of the run; `outermost` is the first one met.
template <class Hook>
TraceSteps::const_reverse_iterator leave_backwards(
    const TraceSteps::const_reverse_iterator& outermost, Hook hook) {
  auto innermost = outermost;
  while (innermost->same_output && std::next(innermost)->kind == TraceStep::Kind::exit) {
    ++innermost;
  }
  for (auto step = innermost.base() - 1; step != outermost.base(); ++step) {
    if (step->requires_grad) {
      hook(step->unit);
    }
  }
  return innermost;
}

/// The steps of the checkpointed block that ends at `end`.
inline TraceSteps::const_iterator checkpoint_begin(TraceSteps::const_iterator end) {
  while (end->kind != TraceStep::Kind::checkpoint_begin) {
    --end;
  }
  return end;
}

}  // namespace fsdp
