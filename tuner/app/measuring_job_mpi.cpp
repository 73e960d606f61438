#include "bench/backend/mpi/backend.hpp"
#include "tuner/app/job.hpp"

namespace fsdp {

namespace {

class MpiJob final : public Job {
 public:
  explicit MpiJob(Nanoseconds timeout) : session_({.timeout = timeout}) {}
  ControlPlane& control() override { return session_.control(); }
  std::unique_ptr<Executor> measuring_executor(
      const std::optional<FaultInjection>& fault) override {
    return session_.executor(fault);
  }
  void finish(ExitCode code) noexcept override { session_.finish(code); }
  [[noreturn]] void abort(ExitCode code) override { session_.abort(code); }

 private:
  mpi::Session session_;
};

}  // namespace

Measuring measuring() { return Measuring::built; }

std::unique_ptr<Job> join_job(Nanoseconds timeout) { return std::make_unique<MpiJob>(timeout); }

}  // namespace fsdp
