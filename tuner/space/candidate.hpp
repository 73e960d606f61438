// One way to shard the model that the tuner may recommend, with everything that follows from it
// before anything runs.
#pragma once

#include <optional>
#include <string>

#include "core/model/batch.hpp"
#include "core/model/device_mesh.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"
#include "core/schedule/memory.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

struct Candidate {
  FsdpPolicy policy;
  std::string label;    ///< "every 2 blocks, prefetch 1/2, reshard": unique among the candidates
  int unit_blocks = 0;  ///< blocks a unit; 0 when the wrap rule is not uniform
  bool is_default = false;
  Schedule schedule;
  std::string hash;  ///< of the schedule without the policy's name: equal means the same step
  MemoryReport memory;
};

/// What stays the same for all candidates. References are not owned.
struct Workload {
  const ModelSpec& model;
  DeviceMesh mesh;
  Batch batch;
};

/// Plans and schedules one policy. Throws UsageError for a policy that the model or the profile
/// does not allow.
Candidate make_candidate(const Workload& workload, const FsdpPolicy& policy);

/// Depth of a prefetch; nothing for explicit lists.
std::optional<int> prefetch_depth(const Prefetch& prefetch);

}  // namespace fsdp
