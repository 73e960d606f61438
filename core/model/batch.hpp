// How many tokens a rank computes between two optimizer steps.
#pragma once

#include <cstdint>

namespace fsdp {

/// Which micro-batches of a step reduce gradients.
enum class GradientSync {
  last,            ///< the last one alone (FSDP1: the others run in no_sync)
  every,           ///< each
  reduce_scatter,  ///< each reduce-scatters, the last one all-reduces (hybrid sharding)
};

struct Batch {
  std::int64_t sequence = 1024;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;  ///< micro-batches a step
  GradientSync sync = GradientSync::last;
  /// FSDP2's set_reshard_after_backward for all micro-batches but the last.
  bool reshard_after_backward = true;

  std::int64_t tokens() const { return sequence * micro_batch; }  ///< per rank and micro-batch
};

}  // namespace fsdp
