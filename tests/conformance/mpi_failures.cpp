// Ways for a job to go wrong, one an argument: the tests look at what it says and at its exit code.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "bench/backend/mpi/backend.hpp"
#include "tests/support/small_plans.hpp"

namespace fsdp::test {
namespace {

constexpr unsigned longer_than_any_timeout_s = 30;

Schedule any_schedule(int ranks) { return schedule_of(small_plans().front(), ranks); }

/// The last rank never comes to the barrier.
void absent_rank(mpi::Session& session) {
  if (session.control().rank() == session.control().size() - 1) {
    sleep(longer_than_any_timeout_s);
  }
  session.control().barrier("calibration");
}

/// Ranks stand at different places of the program.
void two_stages(mpi::Session& session) {
  session.control().barrier(session.control().rank() == 0 ? "calibration" : "search");
}

/// The last rank prepares a step and never runs it.
void absent_from_step(mpi::Session& session) {
  const Schedule schedule = any_schedule(session.control().size());
  const auto executor = session.executor(std::nullopt);
  const auto step = executor->prepare(schedule);
  Timeline timeline = timeline_for(schedule);
  if (session.control().rank() == session.control().size() - 1) {
    sleep(longer_than_any_timeout_s);
  }
  step->run(timeline);
}

/// A step that failed is over, and what it leaves behind can be destroyed.
void step_after_timeout(mpi::Session& session) {
  const Schedule schedule = any_schedule(session.control().size());
  const auto executor = session.executor(std::nullopt);
  auto step = executor->prepare(schedule);
  Timeline timeline = timeline_for(schedule);
  if (session.control().rank() != 0) {
    sleep(longer_than_any_timeout_s);
  }
  try {
    step->run(timeline);
  } catch (const TimeoutError&) {
    try {
      step->run(timeline);
    } catch (const EnvironmentError& error) {
      std::fprintf(stderr, "second run: %s\n", error.what());
    }
  }
  step.reset();
  std::fprintf(stderr, "step destroyed\n");
  session.abort(ExitCode::timeout);
}

/// One rank throws past the Session while the others wait for it.
void unhandled_error(mpi::Session& session) {
  if (session.control().rank() == 1) {
    throw std::runtime_error("out of luck");
  }
  session.control().barrier("waiting for rank 1");
}

void run(const std::string& failure, mpi::Session& session) {
  if (failure == "absent-rank") {
    absent_rank(session);
  } else if (failure == "two-stages") {
    two_stages(session);
  } else if (failure == "absent-from-step") {
    absent_from_step(session);
  } else if (failure == "step-after-timeout") {
    step_after_timeout(session);
  } else if (failure == "unhandled-error") {
    unhandled_error(session);
  }
}

}  // namespace
}  // namespace fsdp::test

/// Arguments: the failure, or "exit-code" and the code to finish with.
int main(int argc, char** argv) {
  const std::string failure = argc > 1 ? argv[1] : "none";
  try {
    fsdp::mpi::Session session({.timeout = fsdp::Nanoseconds{1'500'000'000}});
    try {
      fsdp::test::run(failure, session);
    } catch (const fsdp::Error& error) {
      std::fprintf(stderr, "rank %d: %s\n", session.control().rank(), error.what());
      session.abort(error.exit_code());
    }
    const auto code = failure == "exit-code" ? fsdp::ExitCode::no_verdict : fsdp::ExitCode::ok;
    session.finish(code);
    return static_cast<int>(code);
  } catch (const fsdp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    // Only reached without MPI: a Session that unwinds ends the job first.
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
