#include "bench/backend/mpi/communicator.hpp"

#include "bench/backend/mpi/error.hpp"
#include "bench/backend/mpi/wait.hpp"
#include "core/units/error.hpp"
#include "kernels/reduce.hpp"

namespace fsdp::mpi {
namespace {

constexpr Nanoseconds setup_limit{60'000'000'000};

// MPI fixes this signature; a pointer to non-const int is part of it.
void add_bf16(void* part, void* total, int* length, MPI_Datatype* /*type*/) {
  kernels::sum({static_cast<const std::byte*>(part), *length, DType::bf16},
               {static_cast<std::byte*>(total), *length, DType::bf16});
}

MPI_Datatype mpi_type(DType dtype) {
  expects(dtype == DType::f32 || dtype == DType::bf16, "collectives move f32 or bf16");
  return dtype == DType::f32 ? MPI_FLOAT : MPI_UINT16_T;
}

bool mpi_is_finalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

}  // namespace

Bf16Sum::Bf16Sum() { check(MPI_Op_create(&add_bf16, 1, &op_), "creating the bf16 sum"); }

Bf16Sum::~Bf16Sum() {
  if (op_ != MPI_OP_NULL && !mpi_is_finalized()) {
    check_or_log(MPI_Op_free(&op_), "MPI_Op_free");
  }
}

Communicator::Communicator(MPI_Comm parent) {
  // The blocking MPI_Comm_dup spins, which takes milliseconds where ranks outnumber cores.
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(parent, &comm_, &request), "duplicating a communicator");
  if (wait_all({&request, 1}, setup_limit) == WaitResult::timed_out) {
    throw TimeoutError("setting up a communicator: not all ranks arrived within " +
                       to_text(setup_limit));
  }
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "setting up a communicator");
  check(MPI_Comm_rank(comm_, &rank_), "asking for the rank");
  check(MPI_Comm_size(comm_, &size_), "asking for the number of ranks");
}

Communicator::~Communicator() {
  if (comm_ != MPI_COMM_NULL && !mpi_is_finalized()) {
    check_or_log(MPI_Comm_free(&comm_), "MPI_Comm_free");
  }
}

MPI_Request Communicator::start_all_gather(const kernels::Array& buffer) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer.data,
                       static_cast<int>(buffer.numel / size_), mpi_type(buffer.dtype), comm_,
                       &request),
        "starting an all-gather");
  return request;
}

MPI_Request Communicator::start_reduce_scatter(const kernels::ConstArray& from,
                                               const kernels::Array& to) const {
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Op sum = to.dtype == DType::bf16 ? bf16_sum_.handle() : MPI_SUM;
  check(MPI_Ireduce_scatter_block(from.data, to.data, static_cast<int>(to.numel),
                                  mpi_type(to.dtype), sum, comm_, &request),
        "starting a reduce-scatter");
  return request;
}

bool test(MPI_Request& request) {
  int complete = 0;
  check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "polling a collective");
  return complete != 0;
}

}  // namespace fsdp::mpi
