// The schedule: everything one training step asks of streams, buffers and communicators, as a
// value. Ops stand in host issue order; order inside a stream is implied; only cross-stream edges
// are stored.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/model/cluster_spec.hpp"
#include "core/plan/wrap_plan.hpp"
#include "core/units/id.hpp"

namespace fsdp {

enum class Stream { compute, all_gather_copy_in, all_gather, reduce_scatter, all_reduce };
inline constexpr int stream_count = 5;
enum class Phase { forward, backward };
/// Memory pools follow streams, as PyTorch's allocator does; `resident` lives for the whole step.
enum class Pool { resident, compute, all_gather_copy_in, reduce_scatter };
inline constexpr int pool_count = 4;

enum class BufferKind {
  shard,                  ///< resident master shard, padded: shard_numel
  sharded_grad,           ///< resident reduced gradient in the master dtype: shard_numel
  cast_shard,             ///< shard in the parameter dtype, before copy-in
  all_gather_output,      ///< rank-major: W x shard_numel
  unsharded,              ///< parameters after copy-out, parameter-major: padded_numel
  unsharded_grad,         ///< gradients of `parameters`, unpadded, one after another
  reduce_scatter_input,   ///< rank-major (W, shard elements with a gradient)
  reduce_scatter_output,  ///< own row of the sum
};

struct Buffer {
  BufferKind kind = BufferKind::shard;
  Pool pool = Pool::resident;
  UnitId unit;
  DType dtype = DType::f32;
  std::int64_t numel = 0;
  std::vector<int>
      parameters{};  ///< unsharded_grad, reduce_scatter_*: indices into the unit's parameters

  Bytes bytes() const { return bytes_of(numel, dtype); }
};
using BufferId = Id<Buffer>;

enum class GroupKind { shard, replicate };
enum class ReduceOp { sum, avg, premul_sum };

struct Allocate {
  BufferId buffer;
};
struct Free {
  BufferId buffer;
};
/// Copies with a change of dtype; sizes are equal.
struct Cast {
  BufferId from, to;
};
/// The own shard into its slice of the gather's output.
struct CopyIn {
  BufferId from, to;
};
/// In place: `send` elements at rank * send become `recv` elements.
struct AllGather {
  GroupKind group;
  BufferId buffer;
  std::int64_t send, recv;
  DType dtype;
};
/// Rank-major gather output to parameter-major parameters.
struct CopyOut {
  BufferId from, to;
};
/// Matrix products; writes `gradients` in backward.
struct Compute {
  std::vector<Gemm> gemms;
  DType dtype;
  BufferId parameters;
  std::vector<BufferId> gradients;
};
/// Gradients to the rank-major reduce-scatter input, padded with zeros and widened.
struct ChunkCat {
  std::vector<BufferId> from;
  BufferId to;
};
struct ReduceScatter {
  GroupKind group;
  BufferId from, to;
  std::int64_t send, recv;
  DType dtype;
  ReduceOp op;
  double factor;
};
/// In place on the reduce-scatter output.
struct AllReduce {
  GroupKind group;
  BufferId buffer;
  std::int64_t numel;
  DType dtype;
  ReduceOp op;
  double factor;
};
/// Where the step ends on the compute stream.
struct StepEnd {};

using Work = std::variant<Allocate, Free, Cast, CopyIn, AllGather, CopyOut, Compute, ChunkCat,
                          ReduceScatter, AllReduce, StepEnd>;

struct Op {
  Work work;
  Phase phase = Phase::forward;
  int micro = 0;
  UnitId unit;  ///< invalid for StepEnd
  Stream stream = Stream::compute;
  std::vector<Id<Op>> after;  ///< ops of other streams that end before this one starts
};
using OpId = Id<Op>;

struct Schedule {
  WrapPlan plan;
  std::string policy;  ///< to_text of the policy it was built from
  std::vector<Buffer> buffers;
  std::vector<Op> ops;

  const Buffer& operator[](BufferId id) const { return buffers[id.index()]; }
  const Op& operator[](OpId id) const { return ops[id.index()]; }
};

/// The schedule PyTorch's FSDP2 produces for this plan (profile fsdp2, releases 2.8 to 2.14).
/// Throws UsageError for a policy outside the profile's rules.
Schedule build_schedule(const WrapPlan& plan, const FsdpPolicy& policy, const Batch& batch);

bool is_collective(const Op& op);
/// Null when the op is no collective. Collectives of one group run one at a time in issue order.
const GroupKind* group_of(const Op& op);
/// Bytes on the op's cost curve: destination of a copy, full buffer of a collective, 0 otherwise.
Bytes cost_bytes(const Schedule& schedule, const Op& op);
/// "all_gather", "copy_out", ...
std::string_view name_of(const Op& op);
std::string_view to_text(Stream stream);
std::string_view to_text(Pool pool);
std::string_view to_text(BufferKind kind);
std::string_view to_text(ReduceOp op);
std::string_view to_text(Phase phase);
Stream stream_of(Pool pool);

}  // namespace fsdp
