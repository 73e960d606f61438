// Turns MPI's return codes into errors that say what was tried and what MPI answered.
#pragma once

#include <string>
#include <string_view>

namespace fsdp::mpi {

/// MPI's own text for a return code.
std::string error_text(int code);

/// Throws EnvironmentError "<what>: <MPI's text>" unless `code` is MPI_SUCCESS.
void check(int code, std::string_view what);

/// The twin for destructors: writes the same sentence to stderr.
void check_or_log(int code, std::string_view what) noexcept;

}  // namespace fsdp::mpi
