#include <array>
#include <cstdlib>
#include <string>

#include "tuner/app/job.hpp"

namespace fsdp {

namespace {

class LoneJob final : public Job {
 public:
  ControlPlane& control() override { return control_; }
  std::unique_ptr<Executor> measuring_executor(const std::optional<FaultInjection>&) override {
    throw EnvironmentError("a process outside a job cannot measure; this is a bug of the launcher");
  }
  void finish(ExitCode) noexcept override {}
  [[noreturn]] void abort(ExitCode code) override { std::exit(static_cast<int>(code)); }

 private:
  SerialControlPlane control_;
};

}  // namespace

std::unique_ptr<Job> lone_job() { return std::make_unique<LoneJob>(); }

bool started_among_others() {
  constexpr std::array sizes{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (const char* name : sizes) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 1) {
      return true;
    }
  }
  return std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace fsdp
