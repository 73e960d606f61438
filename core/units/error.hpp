// The three kinds of failure: what the user or the machine did (Error), what the tuner expects
// (Outcome values, elsewhere), and our own mistakes (expects). Every Error knows the exit code it
// ends the program with.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace fsdp {

/// Process exit codes, as documented in README.md.
enum class ExitCode : int {
  ok = 0,
  fail = 1,
  warn = 2,
  wrong_data = 3,
  no_verdict = 4,
  environment = 5,
  timeout = 6,
  usage = 64,
};

/// The graver of two outcomes; over ranks the worst wins.
/// Order: ok < warn < no_verdict < fail < wrong_data < timeout < environment < usage.
ExitCode worst(ExitCode a, ExitCode b);

/// Something outside this program went wrong. The message says what, where, why and what to do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

/// Bad command line or configuration without a place in a file (those are ConfigError). Exit
/// code 64.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// Missing library, failed launch, ranks that disagree. Exit code 5.
class EnvironmentError : public Error {
 public:
  explicit EnvironmentError(const std::string& message) : Error(ExitCode::environment, message) {}
};

/// A wait that ended without its event; the message names who is missing. Exit code 6.
class TimeoutError : public Error {
 public:
  explicit TimeoutError(const std::string& message) : Error(ExitCode::timeout, message) {}
};

/// A bug of this program, not of its user.
class ContractViolation : public std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws ContractViolation with the caller's position when `condition` is false. Never compiled
/// out.
void expects(bool condition, std::string_view what, const char* file = __builtin_FILE(),
             int line = __builtin_LINE());

}  // namespace fsdp
