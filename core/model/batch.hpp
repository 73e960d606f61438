// How many tokens a rank computes between two optimizer steps.
#pragma once

#include <cstdint>

namespace fsdp {

struct Batch {
  std::int64_t sequence = 1024;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;  ///< micro-batches a step

  std::int64_t tokens() const { return sequence * micro_batch; }  ///< per rank and micro-batch
};

}  // namespace fsdp
