// Which policies `tune` looks at: the run file's lists, multiplied out.
#pragma once

#include <vector>

#include "core/config/run_config.hpp"
#include "tuner/space/candidate.hpp"

namespace fsdp {

struct SearchSpace {
  std::vector<Candidate> candidates;  ///< the default first, then in the run file's order
  int enumerated = 0;                 ///< policies looked at, the default included
  int duplicates = 0;                 ///< dropped: the same step as a policy before them
};

/// Uniform unit sizes x forward prefetch x backward prefetch x reshard; all other knobs are the
/// default policy's. Policies that give the same schedule are one candidate, under the first name.
SearchSpace enumerate(const Workload& workload, const FsdpPolicy& default_policy,
                      const SpaceConfig& space);

}  // namespace fsdp
