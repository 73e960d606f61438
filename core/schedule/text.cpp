#include "core/schedule/text.hpp"

#include <fmt/format.h>

namespace fsdp {
namespace {

struct Detail {
  const Schedule& schedule;
  const Numbering& from;

  std::string name(BufferId id) const {
    const Buffer& b = schedule[id];
    return fmt::format("{}:{}", to_text(b.kind), b.unit.value - from.unit);
  }
  std::string names(const std::vector<BufferId>& ids) const {
    std::string out;
    for (const BufferId id : ids) {
      out += (out.empty() ? "" : ", ") + name(id);
    }
    return out;
  }

  static std::string group(const Group& group) {
    return group.kind == GroupKind::submesh ? fmt::format("submesh/{}", group.ranks)
                                            : std::string(to_text(group.kind));
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
    return fmt::format("{} {} -> {} {}{}", group(w.group), w.send, w.recv, to_text(w.dtype),
                       w.in_place() ? " in_place" : "");
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
    out += w.gradients.empty() ? "" : " -> " + names(w.gradients);
    return w.adds_to.empty() ? out : out + " += " + names(w.adds_to);
  }
  std::string operator()(const ChunkCat& w) const {
    return fmt::format("{} -> {}", names(w.from), name(w.to));
  }
  std::string operator()(const ReduceScatter& w) const {
    return fmt::format("{} {} -> {} {} {}", group(w.group), w.send, w.recv, to_text(w.dtype),
                       to_text(w.op));
  }
  std::string operator()(const AllReduce& w) const {
    return fmt::format("{} {} {} {} in_place", group(w.group), w.numel, to_text(w.dtype),
                       to_text(w.op));
  }
  std::string operator()(const ReshardToSubmesh& w) const {
    return fmt::format("{} -> {}", name(w.from), name(w.to));
  }
  std::string operator()(const Concat& w) const {
    return fmt::format("{} -> {}", names(w.from), name(w.to));
  }
  std::string operator()(const Divide& w) const {
    return fmt::format("{} by {}", name(w.buffer), w.by);
  }
  std::string operator()(const Accumulate& w) const {
    return fmt::format("{} += {}", name(w.to), name(w.from));
  }
  std::string operator()(const HostToDevice& w) const {
    return fmt::format("{} -> {}", name(w.from), name(w.to));
  }
  std::string operator()(const DeviceToHost& w) const {
    return fmt::format("{} -> {}", name(w.from), name(w.to));
  }
  std::string operator()(const HostWait& w) const {
    return w.until.valid() ? fmt::format("until #{}", w.until.value - from.op)
                           : "until the step before";
  }
  std::string operator()(const StepEnd&) const { return {}; }
};

/// Everything but the policy's words.
std::string body(const Schedule& schedule) {
  std::string out;
  for (std::size_t i = 0; i < schedule.plan.units.size(); ++i) {
    const FsdpUnit& unit = schedule.plan.units[i];
    out += fmt::format("u{} {} {}\n", i, unit.name, unit_text(unit));
  }
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    out += op_text(schedule, {static_cast<std::int32_t>(i)}) + "\n";
  }
  return out;
}

}  // namespace

std::string unit_text(const FsdpUnit& unit) {
  return fmt::format("numel={} padded={} shard={} param={} reduce={} {}", unit.numel,
                     unit.padded_numel, unit.shard_numel, to_text(unit.param_dtype),
                     to_text(unit.reduce_dtype), to_text(unit.reshard_after_forward));
}

std::string op_text(const Schedule& schedule, OpId id, const Numbering& from) {
  const Op& op = schedule[id];
  std::string after;
  for (const OpId edge : op.after) {
    after += fmt::format("{}#{}", after.empty() ? " after " : " ", edge.value - from.op);
  }
  std::string out =
      fmt::format("#{} {}{} {} {:<18} {:<14} {}{}", id.value - from.op,
                  op.phase == Phase::forward ? "fwd" : "bwd", op.micro,
                  op.unit.valid() ? fmt::format("u{}", op.unit.value - from.unit) : "-",
                  to_text(op.stream, schedule.plan.policy.profile), name_of(op),
                  std::visit(Detail{schedule, from}, op.work), after);
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

std::string header_text(const Schedule& schedule) {
  const DeviceMesh& mesh = schedule.plan.mesh;
  return fmt::format("mesh shard={} replicate={} units={} policy: {}", mesh.shard, mesh.replicate,
                     schedule.plan.units.size(), to_text(schedule.plan.policy));
}

std::string to_text(const Schedule& schedule) {
  return header_text(schedule) + "\n" + body(schedule);
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
