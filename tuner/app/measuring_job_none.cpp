#include "tuner/app/job.hpp"

namespace fsdp {

Measuring measuring() { return Measuring::not_built; }

std::unique_ptr<Job> join_job(Nanoseconds) {
  throw EnvironmentError(
      "this fsdp-tune was built without MPI and cannot measure; configure with -DFSDP_TUNE_MPI=ON "
      "(libmpich-dev, libdnnl-dev), or use --backend sim with a cluster file");
}

}  // namespace fsdp
