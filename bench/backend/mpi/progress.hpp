// How often the communication thread looks after a collective. MPI moves data only while somebody
// calls it, and every call takes time from the products when ranks outnumber cores.
#pragma once

#include <mpi.h>

#include "core/units/quantity.hpp"

namespace fsdp::mpi {

struct ProgressPolicy {
  /// Between two polls while the compute thread computes. While it waits the thread only yields.
  Nanoseconds nap;
  /// How long the waiting compute thread yields before it naps as well.
  Nanoseconds compute_yields;
  /// While there is nothing to poll; a ring ends it early.
  Nanoseconds idle{10'000'000};
};

/// Ranks of `comm` on this machine and the cores they may use.
struct LocalShare {
  int ranks = 1;
  int cores = 1;
};
/// Collective over `comm`.
LocalShare local_share(MPI_Comm comm);

ProgressPolicy progress_policy(const LocalShare& share);

}  // namespace fsdp::mpi
