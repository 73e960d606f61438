// The releases of PyTorch in which a rule of FSDP2's schedule changed: each constant is the first
// release with the rule its name states. Read in the sources of 2.8 to 2.15 and, where a trace can
// show it, recorded (tests/golden).
#pragma once

#include "core/model/fsdp_policy.hpp"

namespace fsdp::since {

/// A shard group of one rank copies locally instead of calling collectives.
inline constexpr Version local_copies{2, 9};
/// A divide factor equal to the shard group's size averages over that group; before, one equal to
/// all ranks averaged over both groups.
inline constexpr Version average_by_shard_group{2, 10};
/// A weight that two units share is refused; before, both sharded a copy of it.
inline constexpr Version shared_weights_refused{2, 12};
/// Post-backward waits for the reduce-scatter before even when it has nothing to reduce itself.
inline constexpr Version wait_without_gradients{2, 12};
/// The end of backward waits for the newest reduction of each stream; before, for every unit's own.
inline constexpr Version wait_by_stream{2, 13};
/// A unit over several modules that did not all run is completed at the end of forward.
inline constexpr Version units_completed{2, 13};
/// set_reduce_scatter_max_input_buffers and set_separate_reduce_scatter_group.
inline constexpr Version reduce_scatter_knobs{2, 13};
/// The end of backward reduces all that is left before it waits for anything.
inline constexpr Version finalize_apart{2, 15};
/// The output of the gather before is dropped before a unit's parameters are allocated.
inline constexpr Version early_drop{2, 15};
/// An unset reduce dtype follows the parameters' own; before, the gradients', which is the compute
/// dtype.
inline constexpr Version reduce_in_master_dtype{2, 15};

}  // namespace fsdp::since

namespace fsdp {

/// The releases whose rules are known. FSDP1's schedule has not changed since 2.1; FSDP2's did in
/// 2.8, before which its collectives ran on streams of the process group.
constexpr Version oldest_release(Profile profile) {
  return profile == Profile::fsdp1 ? Version{2, 1} : Version{2, 8};
}
inline constexpr Version newest_release{2, 15};

}  // namespace fsdp
