// What the host does in one step, in order, in the words of recorded PyTorch traces.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// One line an operation, wait, free or block of the host: "f0 compute: wait all_gather/all_gather
/// root", as in `order` of tests/golden (docs/ARCHITECTURE.md explains the lines).
std::vector<std::string> host_order(const Schedule& schedule);

}  // namespace fsdp
