#include "core/schedule/schedule.hpp"

#include <array>

namespace fsdp {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

bool is_collective(const Op& op) { return group_of(op) != nullptr; }

const GroupKind* group_of(const Op& op) {
  return std::visit(
      [](const auto& work) -> const GroupKind* {
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
                               [&](const ChunkCat& w) { return schedule[w.to].bytes(); },
                               [&](const ReduceScatter& w) { return bytes_of(w.send, w.dtype); },
                               [&](const AllReduce& w) { return bytes_of(w.numel, w.dtype); },
                               [](const auto&) { return Bytes{0}; }},
                    op.work);
}

std::string_view name_of(const Op& op) {
  static constexpr std::array<std::string_view, std::variant_size_v<Work>> names{
      "allocate", "free",      "cast",           "copy_in",    "all_gather", "copy_out",
      "compute",  "chunk_cat", "reduce_scatter", "all_reduce", "step_end"};
  return names[op.work.index()];
}

std::string_view to_text(Stream stream) {
  static constexpr std::array<std::string_view, stream_count> names{
      "compute", "all_gather_copy_in", "all_gather", "reduce_scatter", "all_reduce"};
  return names[static_cast<std::size_t>(stream)];
}

std::string_view to_text(Pool pool) {
  static constexpr std::array<std::string_view, pool_count> names{
      "resident", "compute", "all_gather_copy_in", "reduce_scatter"};
  return names[static_cast<std::size_t>(pool)];
}

std::string_view to_text(BufferKind kind) {
  static constexpr std::array<std::string_view, 8> names{
      "shard",     "sharded_grad",   "cast_shard",           "all_gather_output",
      "unsharded", "unsharded_grad", "reduce_scatter_input", "reduce_scatter_output"};
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
    case Pool::reduce_scatter:
      return Stream::reduce_scatter;
    case Pool::resident:
    case Pool::compute:
      return Stream::compute;
  }
  return Stream::compute;
}

}  // namespace fsdp
