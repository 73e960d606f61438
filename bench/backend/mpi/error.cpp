#include "bench/backend/mpi/error.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstdio>

#include "core/units/error.hpp"

namespace fsdp::mpi {

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
    return fmt::format("MPI error {}", code);
  }
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, std::string_view what) {
  if (code != MPI_SUCCESS) {
    throw EnvironmentError(fmt::format("{}: {}", what, error_text(code)));
  }
}

void check_or_log(int code, std::string_view what) noexcept {
  if (code != MPI_SUCCESS) {
    std::fprintf(stderr, "fsdp-tune: %.*s failed with MPI error %d\n",
                 static_cast<int>(what.size()), what.data(), code);
  }
}

}  // namespace fsdp::mpi
