// A schedule bound to memory: what each operation touches, in which order each stream runs it and
// what it waits for, worked out once so that a timed step only follows it.
#pragma once

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "bench/backend/mpi/arena.hpp"
#include "bench/backend/mpi/gemm.hpp"
#include "core/schedule/schedule.hpp"
#include "kernels/array.hpp"

namespace fsdp::mpi {

/// Allocate, Free: the arena stands already; only the count of live bytes moves.
struct BoundMemory {
  std::int64_t change_bytes = 0;
};
/// Cast, and CopyIn onto the own row.
struct BoundCopy {
  kernels::ConstArray from;
  kernels::Array to;
};
struct BoundCopyOut {
  std::vector<std::int64_t> shard_numel;
  kernels::ConstArray from;
  kernels::Array to;
};
struct BoundChunkCat {
  std::vector<std::int64_t> shard_numel;
  std::vector<kernels::ConstArray> gradients;
  kernels::Array to;
};
struct BoundCompute {
  std::vector<std::size_t> products;
};
struct BoundGather {
  kernels::Array buffer;
};
struct BoundReduceScatter {
  kernels::ConstArray from;
  kernels::Array to;
  float factor = 1;  ///< of the output, after the sum
};
struct BoundEnd {};
using BoundOp = std::variant<BoundMemory, BoundCopy, BoundCopyOut, BoundChunkCat, BoundCompute,
                             BoundGather, BoundReduceScatter, BoundEnd>;

/// The rank's place in the shard group.
struct GroupPlace {
  int rank = 0;
  int ranks = 1;
};

/// What multiplies the sum of a reduce-scatter: 1/ranks for an average, the factor of premul_sum.
float output_factor(const ReduceScatter& work, int ranks);
/// Indices of the parameters that `buffer` holds: its own list, or all of its unit.
std::vector<int> parameters_of(const Schedule& schedule, const Buffer& buffer);

struct StepProgram {
  Schedule schedule;
  GroupPlace place;
  std::vector<BoundOp> ops;
  std::array<std::vector<OpId>, stream_count> streams;  ///< in issue order
  std::vector<OpId> collectives;                        ///< in issue order, one at a time
  std::vector<bool> rings;                              ///< by op: the other thread waits for it
};

/// Adds the products to `gemms`; `gemms.allocate()` is the caller's.
StepProgram bind(const Schedule& schedule, const Arenas& arenas, Gemms& gemms,
                 const GroupPlace& place);

/// Runs everything but collectives, on the calling thread.
void perform(const StepProgram& program, OpId op, Gemms& gemms);

/// "all_gather of model.layers.1 on stream all_gather".
std::string describe(const Schedule& schedule, OpId op);

}  // namespace fsdp::mpi
