// Small models under many policies: one list for every test that wants "a set of plans".
#pragma once

#include <string>
#include <vector>

#include "core/model/batch.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp::test {

/// A model and how it is wrapped. Sizes are odd on purpose: neither 2, 3 nor 4 ranks divide the
/// vocabulary or the hidden size of every parameter.
struct SmallPlan {
  std::string name;  ///< of letters, digits and '_'
  ModelSpec model;
  FsdpPolicy policy;
  Batch batch{.sequence = 8, .micro_batch = 1, .accumulate = 1};
  int replicate = 1;  ///< copies of the shard group; the ranks are a multiple of it
};

/// Block, every 2, titan, none, keep, prefetch 2/2, uneven groups, dtypes, factors, releases.
std::vector<SmallPlan> small_plans();

/// FSDP1, hybrid sharding, sub-groups, accumulation, checkpointing, offload: what the simulator
/// alone executes yet. Each needs 4 ranks.
std::vector<SmallPlan> wide_plans();

/// The schedule of a small plan on `ranks` ranks.
Schedule schedule_of(const SmallPlan& plan, int ranks);

}  // namespace fsdp::test
