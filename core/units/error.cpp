#include "core/units/error.hpp"

#include <fmt/core.h>

namespace fsdp {
namespace {

int gravity(ExitCode code) {
  switch (code) {
    case ExitCode::ok:
      return 0;
    case ExitCode::warn:
      return 1;
    case ExitCode::no_verdict:
      return 2;
    case ExitCode::fail:
      return 3;
    case ExitCode::wrong_data:
      return 4;
    case ExitCode::timeout:
      return 5;
    case ExitCode::environment:
      return 6;
    case ExitCode::usage:
      return 7;
  }
  // A code that this program does not know came from outside; nothing known may hide it.
  return 8;
}

}  // namespace

ExitCode worst(ExitCode a, ExitCode b) { return gravity(a) >= gravity(b) ? a : b; }

void expects(bool condition, std::string_view what, const char* file, int line) {
  if (!condition) {
    throw ContractViolation(
        fmt::format("{}:{}: {}; this is a bug of fsdp-tune, please report it", file, line, what));
  }
}

}  // namespace fsdp
