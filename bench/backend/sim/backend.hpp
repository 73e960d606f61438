// The simulator as a backend: the same interface, timelines from the cost model.
#pragma once

#include <memory>

#include "bench/executor.hpp"
#include "core/model/cluster_spec.hpp"

namespace fsdp::sim {

std::unique_ptr<Executor> make_executor(const ClusterSpec& cluster);

}  // namespace fsdp::sim
