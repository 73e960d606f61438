#include "bench/backend/mpi/raw_collective.hpp"

#include <mpi.h>
#include <sched.h>

#include <cstring>

#include "bench/backend/mpi/arena.hpp"
#include "bench/backend/mpi/error.hpp"
#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {

struct RawAllGather::State {
  explicit State(Bytes bytes) : gathered(bytes) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "duplicating a communicator");
    check(MPI_Comm_size(comm, &ranks), "asking for the number of ranks");
    check(MPI_Comm_rank(comm, &rank), "asking for the rank");
    shard = Arena({bytes.value / ranks});
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { check_or_log(MPI_Comm_free(&comm), "MPI_Comm_free"); }

  Arena gathered;
  Arena shard;
  MPI_Comm comm = MPI_COMM_NULL;
  int ranks = 1;
  int rank = 0;
};

RawAllGather::RawAllGather(Bytes bytes) : state_(std::make_unique<State>(bytes)) {}
RawAllGather::~RawAllGather() = default;

Nanoseconds RawAllGather::run() {
  const auto slice_bytes = static_cast<std::size_t>(state_->shard.bytes().value);
  std::memcpy(state_->gathered.data() + slice_bytes * static_cast<std::size_t>(state_->rank),
              state_->shard.data(), slice_bytes);
  const std::int64_t begin_ns = now_ns();
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, state_->gathered.data(),
                       static_cast<int>(slice_bytes / sizeof(float)), MPI_FLOAT, state_->comm,
                       &request),
        "starting a raw all-gather");
  int complete = 0;
  while (complete == 0) {
    check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "polling a raw all-gather");
    if (complete == 0) {
      sched_yield();
    }
  }
  return Nanoseconds{now_ns() - begin_ns};
}

}  // namespace fsdp::mpi
