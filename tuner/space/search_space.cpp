#include "tuner/space/search_space.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace fsdp {

namespace {

/// Sizes above the number of blocks all mean "all blocks": they would be planned only to be
/// dropped, which takes seconds for models with hundreds of units.
std::vector<int> distinct_sizes(const SpaceConfig& space, int blocks) {
  std::vector<int> sizes;
  for (const int size : space.unit_sizes) {
    const int meant = std::min(size, std::max(1, blocks));
    if (std::find(sizes.begin(), sizes.end(), meant) == sizes.end()) {
      sizes.push_back(meant);
    }
  }
  return sizes;
}

std::vector<FsdpPolicy> policies(const FsdpPolicy& base, const SpaceConfig& space, int blocks) {
  std::vector<FsdpPolicy> result;
  for (const int size : distinct_sizes(space, blocks)) {
    for (const int forward : space.forward_prefetch) {
      for (const int backward : space.backward_prefetch) {
        for (const Reshard reshard : space.reshard) {
          FsdpPolicy policy = base;
          policy.wrap = WrapEvery{size};
          policy.forward_prefetch = forward;
          policy.backward_prefetch = backward;
          policy.reshard_after_forward = reshard;
          result.push_back(std::move(policy));
        }
      }
    }
  }
  return result;
}

}  // namespace

SearchSpace enumerate(const Workload& workload, const FsdpPolicy& default_policy,
                      const SpaceConfig& space) {
  SearchSpace result;
  std::set<std::string> seen;
  const auto consider = [&](const FsdpPolicy& policy) {
    ++result.enumerated;
    Candidate candidate = make_candidate(workload, policy);
    if (!seen.insert(candidate.hash).second) {
      ++result.duplicates;
      return;
    }
    candidate.is_default = result.candidates.empty();
    result.candidates.push_back(std::move(candidate));
  };
  consider(default_policy);
  const int blocks = static_cast<int>(block_paths(workload.model).size());
  for (const FsdpPolicy& policy : policies(default_policy, space, blocks)) {
    consider(policy);
  }
  return result;
}

}  // namespace fsdp
