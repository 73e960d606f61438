// What a policy wastes, where, at which price, and the line that ends it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/model_spec.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

struct Finding {
  /// moved: bytes of full buffers a step, as `cost_bytes` counts them. held: bytes of memory.
  enum class Cost { moved, held };

  std::string id;         ///< "padded_gather"
  std::string unit;       ///< a unit, or units that are alike: "model.layers.0 .. 31 (32 alike)"
  std::string parameter;  ///< where one is to blame
  std::string what;       ///< a sentence
  std::string why;        ///< why it costs
  Bytes bytes;            ///< of one rank
  Cost cost = Cost::moved;
  std::optional<Nanoseconds> time;  ///< a step, where the costs of ops are known
  std::string remedy;               ///< the line of the run file, or what to do
};

/// A model, its schedule and, where a cluster says so, the time of each op.
struct PlanEvidence {
  const ModelSpec& model;
  const Schedule& schedule;
  std::span<const Nanoseconds> op_times{};  ///< empty, or one an op
};

/// All that is found, dearest first among those that move bytes, then those that hold them.
std::vector<Finding> findings(const PlanEvidence& evidence);

std::string_view to_text(Finding::Cost cost);

}  // namespace fsdp
