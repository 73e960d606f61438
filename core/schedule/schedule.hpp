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

/// Named as FSDP2 names them. FSDP1 has the same five under other names: pre_unshard, unshard and
/// post_backward for the second to fourth. `host` holds only what blocks the issuing thread.
enum class Stream { compute, all_gather_copy_in, all_gather, reduce_scatter, all_reduce, host };
inline constexpr int stream_count = 6;
enum class Phase { forward, backward };
/// Memory pools follow streams, as PyTorch's allocator does; `resident` and, on the host,
/// `pinned_host` live for the whole step.
enum class Pool {
  resident,
  pinned_host,
  compute,
  all_gather_copy_in,
  all_gather,
  reduce_scatter,
  all_reduce
};
inline constexpr int pool_count = 7;

enum class BufferKind {
  shard,                  ///< persistent master shard, padded: shard_numel
  sharded_grad,           ///< persistent reduced gradient in the master dtype: shard_numel
  device_shard,           ///< copy of an offloaded shard on the device, in the master dtype
  cast_shard,             ///< shard in the gathered dtype, before copy-in
  all_gather_output,      ///< rank-major: W x shard_numel
  unsharded,              ///< parameters after copy-out, parameter-major (FSDP1: the flat
                          ///< parameter, which the gather fills itself): padded_numel
  resharded,              ///< own slice of a sub-group after forward: padded_numel / sub-group
  chunks,                 ///< parameters cut along another dimension than the first, or their
                          ///< gradients, between two copies
  unsharded_grad,         ///< gradients of `parameters`, unpadded, one after another
  flat_grad,              ///< FSDP1: the gradient of the flat parameter: padded_numel
  reduce_scatter_input,   ///< rank-major (W, shard elements with a gradient)
  reduce_scatter_output,  ///< own row of the sum
};
inline constexpr int buffer_kind_count = 12;

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

/// `submesh`: consecutive ranks that a unit was resharded to after forward. `reduce_scatter`: the
/// ranks of the shard group on a communicator of their own.
enum class GroupKind { shard, replicate, submesh, reduce_scatter };
/// One communicator of a rank.
struct Group {
  GroupKind kind = GroupKind::shard;
  int ranks = 1;

  friend auto operator<=>(const Group&, const Group&) = default;
};
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
/// `send` elements of each rank become `recv` elements; in place when `from` is `to` (FSDP2), where
/// a rank's own stand at rank * send.
struct AllGather {
  Group group;
  BufferId from, to;
  std::int64_t send, recv;
  DType dtype;

  bool in_place() const { return from == to; }
};
/// Rank-major gather output to parameter-major parameters; those cut along another dimension than
/// the first go to `chunks` and are put together by a Concat.
struct CopyOut {
  BufferId from, to;
  BufferId chunks{};
};
/// Own slice of the unsharded parameters, kept for a gather over a sub-group.
struct ReshardToSubmesh {
  BufferId from, to;
};
/// Matrix products; writes `gradients` in backward, or adds to them where an earlier micro-batch
/// left some.
struct Compute {
  std::vector<Gemm> gemms;
  DType dtype;
  BufferId parameters;
  std::vector<BufferId> gradients;
  std::vector<BufferId> adds_to{};  ///< gradients that stand already
};
/// FSDP1: autograd's concatenation of the gradients into the flat one. FSDP2: chunks of another
/// dimension than the first, put together or taken apart.
struct Concat {
  std::vector<BufferId> from;
  BufferId to;
};
/// Gradients to the rank-major reduce-scatter input, padded with zeros and widened.
struct ChunkCat {
  std::vector<BufferId> from;
  BufferId to;
};
struct ReduceScatter {
  Group group;
  BufferId from, to;
  std::int64_t send, recv;
  DType dtype;
  ReduceOp op;
  double factor;
};
/// In place on the reduce-scatter output.
struct AllReduce {
  Group group;
  BufferId buffer;
  std::int64_t numel;
  DType dtype;
  ReduceOp op;
  double factor;
};
/// Divides in place, by a kernel of its own.
struct Divide {
  BufferId buffer;
  double by;
};
/// Adds `from` to `to`, with a change of dtype.
struct Accumulate {
  BufferId from, to;
};
/// From pinned host memory to the device, and back.
struct HostToDevice {
  BufferId from, to;
};
struct DeviceToHost {
  BufferId from, to;
};
/// The issuing thread stops until `until` has ended; whatever is issued later starts after it. An
/// invalid `until` stands for the free of unit `freed` in the step before, which has long ended.
struct HostWait {
  Id<struct Op> until;
  UnitId freed{};
};
/// Where the step ends on the compute stream.
struct StepEnd {};

using Work = std::variant<Allocate, Free, Cast, CopyIn, AllGather, CopyOut, ReshardToSubmesh,
                          Compute, Concat, ChunkCat, ReduceScatter, AllReduce, Divide, Accumulate,
                          HostToDevice, DeviceToHost, HostWait, StepEnd>;

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
  std::vector<Buffer> buffers;
  std::vector<Op> ops;

  const Buffer& operator[](BufferId id) const { return buffers[id.index()]; }
  const Op& operator[](OpId id) const { return ops[id.index()]; }
};

/// The schedule PyTorch produces for this plan in a steady-state step.
/// Throws UsageError for a policy outside the profile's rules.
Schedule build_schedule(const WrapPlan& plan);

bool is_collective(const Op& op);
/// Null when the op is no collective. Collectives of one group run one at a time in issue order.
const Group* group_of(const Op& op);
/// Bytes on the op's cost curve: destination of a copy, full buffer of a collective, 0 otherwise.
Bytes cost_bytes(const Schedule& schedule, const Op& op);
/// "all_gather", "copy_out", ...
std::string_view name_of(const Op& op);
/// The name the profile's PyTorch code gives the stream.
std::string_view to_text(Stream stream, Profile profile);
std::string_view to_text(Pool pool);
std::string_view to_text(BufferKind kind);
std::string_view to_text(GroupKind kind);
std::string_view to_text(ReduceOp op);
std::string_view to_text(Phase phase);
Stream stream_of(Pool pool);
/// True for memory that lives for the whole step.
bool is_persistent(Pool pool);

}  // namespace fsdp
