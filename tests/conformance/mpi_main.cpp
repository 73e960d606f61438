// The conformance suite on MPI: every rank runs every test, and the job fails when one of them
// does.
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include "bench/backend/mpi/backend.hpp"
#include "tests/conformance/backend_under_test.hpp"

namespace fsdp::test {
namespace {

constexpr Nanoseconds timeout{30'000'000'000};

class MpiUnderTest final : public BackendUnderTest {
 public:
  explicit MpiUnderTest(mpi::Session& session) : session_(&session) {}
  ControlPlane& control() override { return session_->control(); }
  std::unique_ptr<Executor> executor(const std::optional<FaultInjection>& fault) override {
    return session_->executor(fault);
  }
  std::vector<int> worlds() override { return {session_->control().size()}; }

 private:
  mpi::Session* session_;
};

/// The pointer that backend_under_test() follows; set while main() runs.
BackendUnderTest*& current_backend() {
  static BackendUnderTest* backend = nullptr;
  return backend;
}

/// Rank 0 prints as usual; the others speak up only when something fails, and say who they are.
class FailuresWithRank final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailuresWithRank(int rank) : rank_(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed()) {
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                   result.message());
    }
  }

 private:
  int rank_;
};

int run_tests(mpi::Session& session) {
  MpiUnderTest backend(session);
  current_backend() = &backend;
  if (session.control().rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresWithRank(session.control().rank()));  // googletest owns it
  }
  double failed = RUN_ALL_TESTS();
  session.control().max({&failed, 1}, "result of the suite");
  current_backend() = nullptr;
  return failed != 0 ? 1 : 0;
}

}  // namespace

BackendUnderTest& backend_under_test() { return *current_backend(); }

}  // namespace fsdp::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  fsdp::mpi::Session session({.timeout = fsdp::test::timeout});
  try {
    const int failed = fsdp::test::run_tests(session);
    session.finish(failed != 0 ? fsdp::ExitCode::fail : fsdp::ExitCode::ok);
    return failed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", session.control().rank(), error.what());
    session.abort(fsdp::ExitCode::fail);
  }
}
