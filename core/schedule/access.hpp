// Which buffers an op reads and writes; the one place that knows, for verification and for checks
// of contents.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

struct Access {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};

/// Empty for Allocate, Free, HostWait and StepEnd. A collective in place reads and writes its
/// buffer.
Access access_of(const Op& op);

}  // namespace fsdp
