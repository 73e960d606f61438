#include "bench/backend/mpi/step_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/units/error.hpp"
#include "kernels/cast.hpp"
#include "kernels/copy.hpp"

namespace fsdp::mpi {
namespace {

/// Turns each kind of work into its bound form.
class Binder {
 public:
  Binder(const Schedule& schedule, const Arenas& arenas, Gemms& gemms, const GroupPlace& place)
      : schedule_(&schedule), arenas_(&arenas), gemms_(&gemms), place_(place) {}

  BoundOp operator()(const Allocate& work) const {
    return BoundMemory{transient_bytes(work.buffer)};
  }
  BoundOp operator()(const Free& work) const { return BoundMemory{-transient_bytes(work.buffer)}; }
  BoundOp operator()(const Cast& work) const {
    const kernels::Array from = (*arenas_)[work.from];
    const kernels::Array to = (*arenas_)[work.to];
    expects(from.numel <= to.numel, "a cast fits into its destination");
    return BoundCopy{from, to.slice(0, from.numel)};
  }
  BoundOp operator()(const CopyIn& work) const {
    const kernels::Array from = (*arenas_)[work.from];
    const kernels::Array to = (*arenas_)[work.to];
    expects(from.numel * place_.ranks == to.numel, "the gather output holds one row a rank");
    return BoundCopy{from, to.slice(place_.rank * from.numel, from.numel)};
  }
  BoundOp operator()(const AllGather& work) const {
    const kernels::Array buffer = (*arenas_)[work.to];
    expects(work.in_place() && buffer.numel == work.recv && work.send * place_.ranks == work.recv &&
                buffer.dtype == work.dtype,
            "an all-gather fills its buffer");
    return BoundGather{buffer};
  }
  BoundOp operator()(const CopyOut& work) const {
    const Buffer& from = (*schedule_)[work.from];
    return BoundCopyOut{shards(from), (*arenas_)[work.from], (*arenas_)[work.to]};
  }
  BoundOp operator()(const Compute& work) const {
    BoundCompute bound;
    for (const Gemm& gemm : work.gemms) {
      bound.products.push_back(gemms_->add(gemm, work.dtype));
    }
    return bound;
  }
  BoundOp operator()(const ChunkCat& work) const {
    const Buffer& to = (*schedule_)[work.to];
    BoundChunkCat bound{shards(to), {}, (*arenas_)[work.to]};
    for (const int parameter : parameters_of(*schedule_, to)) {
      bound.gradients.push_back(gradient_of(parameter, work.from));
    }
    return bound;
  }
  BoundOp operator()(const ReduceScatter& work) const {
    const kernels::Array from = (*arenas_)[work.from];
    const kernels::Array to = (*arenas_)[work.to];
    expects(from.numel == work.send && work.recv * place_.ranks == work.send &&
                work.recv <= to.numel && from.dtype == to.dtype && from.dtype == work.dtype,
            "a reduce-scatter fits its buffers");
    return BoundReduceScatter{from, to.slice(0, work.recv), output_factor(work, place_.ranks)};
  }
  template <class Refused>
  BoundOp operator()(const Refused&) const {
    expects(false, "schedules with work this backend has no code for are refused before");
    return BoundEnd{};
  }
  BoundOp operator()(const StepEnd&) const { return BoundEnd{}; }

 private:
  std::int64_t transient_bytes(BufferId id) const {
    const Buffer& buffer = (*schedule_)[id];
    return buffer.pool == Pool::resident ? 0 : buffer.bytes().value;
  }
  std::vector<std::int64_t> shards(const Buffer& buffer) const {
    const FsdpUnit& unit = schedule_->plan[buffer.unit];
    std::vector<std::int64_t> numel;
    for (const int parameter : parameters_of(*schedule_, buffer)) {
      numel.push_back(unit.parameters[static_cast<std::size_t>(parameter)].shard_numel);
    }
    return numel;
  }
  /// Gradients stand unpadded, one after another, in the buffer that lists the parameter.
  kernels::ConstArray gradient_of(int parameter, const std::vector<BufferId>& buffers) const {
    for (const BufferId id : buffers) {
      const Buffer& buffer = (*schedule_)[id];
      const FsdpUnit& unit = schedule_->plan[buffer.unit];
      std::int64_t offset = 0;
      for (const int held : parameters_of(*schedule_, buffer)) {
        const std::int64_t numel = unit.parameters[static_cast<std::size_t>(held)].numel;
        if (held == parameter) {
          return (*arenas_)[id].slice(offset, numel);
        }
        offset += numel;
      }
    }
    expects(false, "every reduced parameter has a gradient");
    return {};
  }

  const Schedule* schedule_;
  const Arenas* arenas_;
  Gemms* gemms_;
  GroupPlace place_;
};

/// Runs each kind of bound work that needs no other rank.
struct Performer {
  int ranks;
  Gemms& gemms;

  void operator()(const BoundMemory&) const {}
  void operator()(const BoundCopy& op) const { kernels::cast(op.from, op.to); }
  void operator()(const BoundCopyOut& op) const {
    kernels::copy_out({ranks, op.shard_numel}, op.from, op.to);
  }
  void operator()(const BoundChunkCat& op) const {
    kernels::chunk_cat({ranks, op.shard_numel}, op.gradients, op.to);
  }
  void operator()(const BoundCompute& op) const {
    for (const std::size_t product : op.products) {
      gemms.run(product);
    }
  }
  void operator()(const BoundGather&) const {
    expects(false, "collectives belong to the communication thread");
  }
  void operator()(const BoundReduceScatter&) const {
    expects(false, "collectives belong to the communication thread");
  }
  void operator()(const BoundEnd&) const {}
};

}  // namespace

float output_factor(const ReduceScatter& work, int ranks) {
  switch (work.op) {
    case ReduceOp::sum:
      return 1.0F;
    case ReduceOp::avg:
      return 1.0F / static_cast<float>(ranks);
    case ReduceOp::premul_sum:
      return static_cast<float>(work.factor);
  }
  return 1.0F;
}

std::vector<int> parameters_of(const Schedule& schedule, const Buffer& buffer) {
  if (!buffer.parameters.empty()) {
    return buffer.parameters;
  }
  std::vector<int> all(schedule.plan[buffer.unit].parameters.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

StepProgram bind(const Schedule& schedule, const Arenas& arenas, Gemms& gemms,
                 const GroupPlace& place) {
  StepProgram program{.schedule = schedule,
                      .place = place,
                      .ops = {},
                      .streams = {},
                      .collectives = {},
                      .rings = std::vector<bool>(schedule.ops.size(), false)};
  const Binder binder(program.schedule, arenas, gemms, place);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = program.schedule.ops[i];
    const OpId id{static_cast<std::int32_t>(i)};
    program.ops.push_back(std::visit(binder, op.work));
    program.streams[static_cast<std::size_t>(op.stream)].push_back(id);
    if (is_collective(op)) {
      program.collectives.push_back(id);
    }
    for (const OpId before : op.after) {
      const bool waits_on_other_thread =
          (op.stream == Stream::compute) != (program.schedule[before].stream == Stream::compute);
      program.rings[before.index()] = program.rings[before.index()] || waits_on_other_thread;
    }
  }
  return program;
}

void perform(const StepProgram& program, OpId op, Gemms& gemms) {
  std::visit(Performer{program.place.ranks, gemms}, program.ops[op.index()]);
}

std::string describe(const Schedule& schedule, OpId op) {
  const Op& what = schedule[op];
  return fmt::format("{}{} on stream {}", name_of(what),
                     what.unit.valid() ? " of " + schedule.plan[what.unit].name : "",
                     to_text(what.stream, schedule.plan.policy.profile));
}

}  // namespace fsdp::mpi
