#include "tuner/search/prune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/units/error.hpp"

namespace fsdp {

namespace {

std::string remedies(const Candidate& candidate) {
  return fmt::format(
      "raise memory.limit, shard over more ranks (mesh.shard), allow smaller units "
      "(space.units.sizes), reshard_after_forward: true and less prefetch. Of the need, {} are "
      "parameters and gradients, {} the optimizer's moments",
      to_text(candidate.memory.resident), to_text(candidate.memory.optimizer));
}

/// Drops what does not fit; throws when that is everything.
void drop_unfitting(std::vector<Trial>& trials, const PruneLimits& limits) {
  bool fits_limit = false;
  bool fits_machine = false;
  const Candidate* smallest = nullptr;
  for (Trial& trial : trials) {
    const MemoryReport& memory = trial.candidate.memory;
    if (smallest == nullptr || memory.total() < smallest->memory.total()) {
      smallest = &trial.candidate;
    }
    if (limits.memory_limit && memory.total() > *limits.memory_limit) {
      trial.dropped = fmt::format("does not fit: needs {} a rank, memory.limit is {}",
                                  to_text(memory.total()), to_text(*limits.memory_limit));
      continue;
    }
    fits_limit = true;
    if (limits.available && memory.arenas > *limits.available) {
      trial.dropped = fmt::format("does not fit: a replay allocates {} a rank, {} available",
                                  to_text(memory.arenas), to_text(*limits.available));
      continue;
    }
    fits_machine = true;
  }
  if (!fits_limit) {
    throw UsageError(
        fmt::format("no plan fits memory.limit {}: the smallest ({}) needs {} a rank; {}",
                    to_text(*limits.memory_limit), smallest->label,
                    to_text(smallest->memory.total()), remedies(*smallest)));
  }
  if (!fits_machine) {
    throw EnvironmentError(fmt::format(
        "no plan fits this machine: {} is available a rank and a replay of the smallest plan ({}) "
        "allocates {}; start fewer ranks a host, or shard over more hosts",
        to_text(*limits.available), smallest->label, to_text(smallest->memory.arenas)));
  }
}

/// Faster first; what the cost model does not know comes last; equal times keep their order.
bool predicted_before(const Trial& a, const Trial& b) {
  const Measured* left = predicted_step(a);
  const Measured* right = predicted_step(b);
  if (left == nullptr || right == nullptr) {
    return left != nullptr;
  }
  return left->step_ns < right->step_ns;
}

/// True when the model sees no difference between `trial` and a better plan of the same units.
bool shadowed(const Trial& trial, const std::vector<Trial>& trials,
              const std::vector<std::size_t>& better, double indifference) {
  const Measured* own = predicted_step(trial);
  return own != nullptr && std::any_of(better.begin(), better.end(), [&](std::size_t i) {
           const FsdpPolicy& other = trials[i].candidate.policy;
           const Measured* step = predicted_step(trials[i]);
           return step != nullptr &&
                  trials[i].candidate.unit_blocks == trial.candidate.unit_blocks &&
                  to_text(other.wrap) == to_text(trial.candidate.policy.wrap) &&
                  other.reshard_after_forward == trial.candidate.policy.reshard_after_forward &&
                  std::abs(own->step_ns - step->step_ns) <= indifference * step->step_ns;
         });
}

/// `order` with shadowed plans moved behind all others, otherwise unchanged.
std::vector<std::size_t> distinct_first(const std::vector<Trial>& trials,
                                        const std::vector<std::size_t>& order,
                                        double indifference) {
  std::vector<std::size_t> distinct;
  std::vector<std::size_t> rest;
  for (const std::size_t i : order) {
    auto& list = shadowed(trials[i], trials, distinct, indifference) ? rest : distinct;
    list.push_back(i);
  }
  distinct.insert(distinct.end(), rest.begin(), rest.end());
  return distinct;
}

}  // namespace

std::vector<std::size_t> prune(std::vector<Trial>& trials, const PruneLimits& limits) {
  expects(!trials.empty(), "a search holds at least the default");
  drop_unfitting(trials, limits);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].dropped.empty()) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool default_a = trials[a].candidate.is_default;
    const bool default_b = trials[b].candidate.is_default;
    return default_a != default_b ? default_a : predicted_before(trials[a], trials[b]);
  });
  order = distinct_first(trials, order, limits.indifference);
  const auto kept = static_cast<std::size_t>(std::max(1, limits.survivors));
  for (std::size_t place = kept; place < order.size(); ++place) {
    Trial& trial = trials[order[place]];
    if (predicted_step(trial) != nullptr) {
      trial.dropped = "pruned by simulation";
    } else {
      trial.dropped = trial.predicted ? to_text(*trial.predicted) : "not simulated";
    }
  }
  order.resize(std::min(order.size(), kept));
  return order;
}

}  // namespace fsdp
