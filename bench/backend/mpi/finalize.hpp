// The end of MPI, without trusting it to come: MPICH over UCX's tcp transport can hang in
// MPI_Finalize after all results are written.
#pragma once

#include "core/units/error.hpp"

namespace fsdp::mpi {

/// MPI_Finalize; a process still inside after a few seconds ends at once with `code`. All ranks
/// have passed a barrier and hold no communicator any more.
void finalize_under_watchdog(ExitCode code);

/// Ends the job on all ranks with `code`, and this process whatever happens.
[[noreturn]] void abort_job(ExitCode code) noexcept;

}  // namespace fsdp::mpi
