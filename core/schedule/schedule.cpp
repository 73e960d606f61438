#include "core/schedule/schedule.hpp"

#include <algorithm>
#include <array>

namespace fsdp {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not find it itself

/// What moves is the smaller side: the other may hold more than what is concatenated.
Bytes concat_bytes(const Schedule& schedule, const Concat& work) {
  Bytes from;
  for (const BufferId id : work.from) {
    from += schedule[id].bytes();
  }
  return std::min(from, schedule[work.to].bytes());
}

}  // namespace

bool is_collective(const Op& op) { return group_of(op) != nullptr; }

const Group* group_of(const Op& op) {
  return std::visit(
      [](const auto& work) -> const Group* {
        if constexpr (requires { work.group; }) {
          return &work.group;
        } else {
          return nullptr;
        }
      },
      op.work);
}

Bytes cost_bytes(const Schedule& schedule, const Op& op) {
  return std::visit(Overloaded{[&](const Cast& w) { return schedule[w.to].bytes(); },
                               [&](const CopyIn& w) { return schedule[w.from].bytes(); },
                               [&](const AllGather& w) { return bytes_of(w.recv, w.dtype); },
                               [&](const CopyOut& w) { return schedule[w.to].bytes(); },
                               [&](const ReshardToSubmesh& w) { return schedule[w.to].bytes(); },
                               [&](const Concat& w) { return concat_bytes(schedule, w); },
                               [&](const ChunkCat& w) { return schedule[w.to].bytes(); },
                               [&](const ReduceScatter& w) { return bytes_of(w.send, w.dtype); },
                               [&](const AllReduce& w) { return bytes_of(w.numel, w.dtype); },
                               [&](const Divide& w) { return schedule[w.buffer].bytes(); },
                               [&](const Accumulate& w) { return schedule[w.to].bytes(); },
                               [&](const HostToDevice& w) { return schedule[w.to].bytes(); },
                               [&](const DeviceToHost& w) { return schedule[w.from].bytes(); },
                               [](const auto&) { return Bytes{0}; }},
                    op.work);
}

std::string_view name_of(const Op& op) {
  static constexpr std::array<std::string_view, std::variant_size_v<Work>> names{
      "allocate",
      "free",
      "cast",
      "copy_in",
      "all_gather",
      "copy_out",
      "reshard_to_submesh",
      "compute",
      "concat",
      "chunk_cat",
      "reduce_scatter",
      "all_reduce",
      "divide",
      "accumulate",
      "host_to_device",
      "device_to_host",
      "host_wait",
      "step_end"};
  return names[op.work.index()];
}

std::string_view to_text(Stream stream, Profile profile) {
  static constexpr std::array<std::string_view, stream_count> fsdp2{
      "compute", "all_gather_copy_in", "all_gather", "reduce_scatter", "all_reduce", "host"};
  static constexpr std::array<std::string_view, stream_count> fsdp1{
      "compute", "pre_unshard", "unshard", "post_backward", "all_reduce", "host"};
  return (profile == Profile::fsdp1 ? fsdp1 : fsdp2)[static_cast<std::size_t>(stream)];
}

std::string_view to_text(Pool pool) {
  static constexpr std::array<std::string_view, pool_count> names{
      "resident",   "pinned_host",    "compute",   "all_gather_copy_in",
      "all_gather", "reduce_scatter", "all_reduce"};
  return names[static_cast<std::size_t>(pool)];
}

std::string_view to_text(BufferKind kind) {
  static constexpr std::array<std::string_view, buffer_kind_count> names{"shard",
                                                                         "sharded_grad",
                                                                         "device_shard",
                                                                         "cast_shard",
                                                                         "all_gather_output",
                                                                         "unsharded",
                                                                         "resharded",
                                                                         "chunks",
                                                                         "unsharded_grad",
                                                                         "flat_grad",
                                                                         "reduce_scatter_input",
                                                                         "reduce_scatter_output"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_text(GroupKind kind) {
  static constexpr std::array<std::string_view, 4> names{"shard", "replicate", "submesh",
                                                         "reduce_scatter"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_text(ReduceOp op) {
  static constexpr std::array<std::string_view, 3> names{"sum", "avg", "premul_sum"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_text(Phase phase) { return phase == Phase::forward ? "forward" : "backward"; }

Stream stream_of(Pool pool) {
  switch (pool) {
    case Pool::all_gather_copy_in:
      return Stream::all_gather_copy_in;
    case Pool::all_gather:
      return Stream::all_gather;
    case Pool::reduce_scatter:
      return Stream::reduce_scatter;
    case Pool::all_reduce:
      return Stream::all_reduce;
    case Pool::resident:
    case Pool::pinned_host:
    case Pool::compute:
      return Stream::compute;
  }
  return Stream::compute;
}

bool is_persistent(Pool pool) { return pool == Pool::resident || pool == Pool::pinned_host; }

}  // namespace fsdp
