// A communicator of our own and the two collectives FSDP asks of it. Non-blocking only: whoever
// starts one polls it.
#pragma once

#include <mpi.h>

#include "kernels/array.hpp"

namespace fsdp::mpi {

/// MPI has no bf16: the sum of two halves of floats as an operation over MPI_UINT16_T.
class Bf16Sum {
 public:
  Bf16Sum();
  ~Bf16Sum();
  Bf16Sum(const Bf16Sum&) = delete;
  Bf16Sum& operator=(const Bf16Sum&) = delete;
  MPI_Op handle() const { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

/// A duplicate of `parent`: our messages never meet those of anybody else.
class Communicator {
 public:
  /// Collective over `parent`. Throws EnvironmentError.
  explicit Communicator(MPI_Comm parent);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm handle() const { return comm_; }

  /// In place: rank r's slice of numel / size elements reaches every rank.
  MPI_Request start_all_gather(const kernels::Array& buffer) const;
  /// Slice r of the sum over ranks reaches rank r. f32 or bf16.
  MPI_Request start_reduce_scatter(const kernels::ConstArray& from, const kernels::Array& to) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  Bf16Sum bf16_sum_;
};

/// True once the operation is complete; the request is null then.
bool test(MPI_Request& request);

}  // namespace fsdp::mpi
