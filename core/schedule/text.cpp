#include "core/schedule/text.hpp"

#include <fmt/format.h>

namespace fsdp {
namespace {

struct Detail {
  const Schedule& schedule;

  std::string name(BufferId id) const {
    const Buffer& b = schedule[id];
    return fmt::format("{}:{}", to_text(b.kind), b.unit.value);
  }
  std::string names(const std::vector<BufferId>& ids) const {
    std::string out;
    for (const BufferId id : ids) {
      out += (out.empty() ? "" : ", ") + name(id);
    }
    return out;
  }

  std::string operator()(const Allocate& w) const {
    const Buffer& b = schedule[w.buffer];
    return fmt::format("{} {} x {} {} pool={}", name(w.buffer), b.numel, to_text(b.dtype),
                       to_text(b.bytes()), to_text(b.pool));
  }
  std::string operator()(const Free& w) const { return name(w.buffer); }
  std::string operator()(const Cast& w) const {
    return fmt::format("{} -> {} {}", name(w.from), name(w.to), to_text(schedule[w.to].dtype));
  }
  std::string operator()(const CopyIn& w) const {
    return fmt::format("{} -> {}", name(w.from), name(w.to));
  }
  std::string operator()(const AllGather& w) const {
    return fmt::format("shard {} -> {} {} in_place", w.send, w.recv, to_text(w.dtype));
  }
  std::string operator()(const CopyOut& w) const {
    return fmt::format("{} -> {}", name(w.from), name(w.to));
  }
  std::string operator()(const Compute& w) const {
    double work = 0;
    for (const Gemm& gemm : w.gemms) {
      work += flops(gemm).value;
    }
    std::string out =
        fmt::format("{} products {:.0f} FLOP {}", w.gemms.size(), work, to_text(w.dtype));
    return w.gradients.empty() ? out : out + " -> " + names(w.gradients);
  }
  std::string operator()(const ChunkCat& w) const {
    return fmt::format("{} -> {}", names(w.from), name(w.to));
  }
  std::string operator()(const ReduceScatter& w) const {
    return fmt::format("shard {} -> {} {} {}", w.send, w.recv, to_text(w.dtype), to_text(w.op));
  }
  std::string operator()(const AllReduce& w) const {
    return fmt::format("replicate {} {} {} in_place", w.numel, to_text(w.dtype), to_text(w.op));
  }
  std::string operator()(const StepEnd&) const { return {}; }
};

std::string line(const Schedule& schedule, std::size_t i) {
  const Op& op = schedule.ops[i];
  std::string after;
  for (const OpId edge : op.after) {
    after += fmt::format("{}#{}", after.empty() ? " after " : " ", edge.value);
  }
  std::string out =
      fmt::format("#{} {}{} {} {:<18} {:<14} {}{}", i, op.phase == Phase::forward ? "fwd" : "bwd",
                  op.micro, op.unit.valid() ? fmt::format("u{}", op.unit.value) : "-",
                  to_text(op.stream), name_of(op), std::visit(Detail{schedule}, op.work), after);
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

/// Everything but the policy's words.
std::string body(const Schedule& schedule) {
  std::string out;
  for (std::size_t i = 0; i < schedule.plan.units.size(); ++i) {
    const FsdpUnit& unit = schedule.plan.units[i];
    out += fmt::format("u{} {} numel={} padded={} shard={} param={} reduce={} {}\n", i, unit.name,
                       unit.numel, unit.padded_numel, unit.shard_numel, to_text(unit.param_dtype),
                       to_text(unit.reduce_dtype), to_text(unit.reshard_after_forward));
  }
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    out += line(schedule, i);
  }
  return out;
}

}  // namespace

std::string to_text(const Schedule& schedule) {
  const DeviceMesh& mesh = schedule.plan.mesh;
  return fmt::format("mesh shard={} replicate={} units={} policy: {}\n", mesh.shard, mesh.replicate,
                     schedule.plan.units.size(), schedule.policy) +
         body(schedule);
}

std::string schedule_hash(const Schedule& schedule) {
  // FNV-1a: the hash names a schedule in records, it guards against nothing. The policy's own words
  // are left out, so that two policies with one effect have one hash.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : body(schedule)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace fsdp
