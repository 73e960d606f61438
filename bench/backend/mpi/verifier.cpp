#include "bench/backend/mpi/verifier.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

/// What an operation leaves behind that a fault may spoil.
const BufferId* result_of(const Op& op) {
  if (const auto* gather = std::get_if<AllGather>(&op.work)) {
    return &gather->to;
  }
  if (const auto* reduce = std::get_if<ReduceScatter>(&op.work)) {
    return &reduce->to;
  }
  return nullptr;
}

}  // namespace

OpId fault_target(const Schedule& schedule, const FaultInjection& fault, const GroupPlace& place) {
  if (fault.rank < 0 || fault.rank >= place.ranks) {
    throw UsageError(fmt::format("fault injection on rank {}: this job has ranks 0 to {}",
                                 fault.rank, place.ranks - 1));
  }
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const bool named = result_of(op) != nullptr && name_of(op) == fault.operation;
    if (named && (fault.unit.empty() || schedule.plan[op.unit].name == fault.unit)) {
      return fault.rank == place.rank ? OpId{static_cast<std::int32_t>(i)} : OpId{};
    }
  }
  throw UsageError(fmt::format(
      "fault injection: the schedule has no {}{}. Name all_gather or reduce_scatter and a unit of "
      "the plan",
      fault.operation, fault.unit.empty() ? "" : " of unit " + fault.unit));
}

void fill_shards(const Schedule& schedule, const Arenas& arenas, const GroupPlace& place) {
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    if (buffer.kind != BufferKind::shard) {
      continue;
    }
    const kernels::Array shard = arenas[BufferId{static_cast<std::int32_t>(i)}];
    std::int64_t offset = 0;
    for (const int parameter : parameters_of(schedule, buffer)) {
      const auto& held = schedule.plan[buffer.unit].parameters[static_cast<std::size_t>(parameter)];
      kernels::fill_values({.unit = buffer.unit.value, .parameter = parameter, .numel = held.numel},
                           place.rank * held.shard_numel, shard.slice(offset, held.shard_numel));
      offset += held.shard_numel;
    }
  }
}

const UnitParameter& Verifier::parameter_at(UnitId unit, int parameter) const {
  return program_->schedule.plan[unit].parameters[static_cast<std::size_t>(parameter)];
}

kernels::PayloadKey Verifier::key(UnitId unit, int parameter) const {
  return {.unit = unit.value, .parameter = parameter, .numel = parameter_at(unit, parameter).numel};
}

/// A cast behind a reduce-scatter moves its result on; a group of one has no reduce-scatter and
/// its gradients are their own sum.
void Verifier::remember_reductions() {
  const int ranks = program_->place.ranks;
  for (const Op& op : program_->schedule.ops) {
    if (const auto* reduce = std::get_if<ReduceScatter>(&op.work)) {
      reductions_[reduce->to] = {
          reduce->from,
          {.ranks = ranks, .factor = output_factor(*reduce, ranks), .dtype = reduce->dtype}};
    } else if (const auto* cat = std::get_if<ChunkCat>(&op.work); cat != nullptr && ranks == 1) {
      reductions_.try_emplace(
          cat->to,
          Reduction{cat->to,
                    {.ranks = 1, .factor = 1, .dtype = program_->schedule[cat->to].dtype}});
    }
  }
}

void Verifier::begin() {
  mismatch_.reset();
  arenas_->poison_transients();
  for (std::size_t i = 0; i < program_->schedule.buffers.size(); ++i) {
    if (program_->schedule.buffers[i].kind == BufferKind::sharded_grad) {
      kernels::poison((*arenas_)[BufferId{static_cast<std::int32_t>(i)}]);
    }
  }
  fill_shards(program_->schedule, *arenas_, program_->place);
}

void Verifier::after(OpId op) {
  if (op == fault_) {
    inject(op);
  }
  const Work& work = program_->schedule[op].work;
  if (const auto* allocate = std::get_if<Allocate>(&work)) {
    kernels::poison((*arenas_)[allocate->buffer]);
  } else if (const auto* free = std::get_if<Free>(&work)) {
    kernels::poison((*arenas_)[free->buffer]);
  } else if (const auto* gather = std::get_if<AllGather>(&work)) {
    check_gathered(op, gather->to);
  } else if (const auto* copy_out = std::get_if<CopyOut>(&work)) {
    check_unsharded(op, copy_out->to);
  } else if (const auto* compute = std::get_if<Compute>(&work)) {
    // Once more behind the products: nobody may have written to parameters while they were read.
    if (compute->parameters.valid() &&
        program_->schedule[compute->parameters].kind == BufferKind::unsharded) {
      check_unsharded(op, compute->parameters);
    }
    for (const BufferId gradient : compute->gradients) {
      fill_gradients(gradient);
    }
  } else if (const auto* reduce = std::get_if<ReduceScatter>(&work)) {
    check_reduced(op, reduce->to, reductions_.at(reduce->to));
  } else if (const auto* cast = std::get_if<Cast>(&work)) {
    if (program_->schedule[cast->to].kind == BufferKind::unsharded) {
      check_unsharded(op, cast->to);  // a group of one copies its shard
    } else if (const auto found = reductions_.find(cast->from); found != reductions_.end()) {
      check_reduced(op, cast->to, found->second);
    }
  }
}

void Verifier::inject(OpId op) const {
  const kernels::Array result = (*arenas_)[*result_of(program_->schedule[op])];
  if (result.bytes() > 0) {
    result.data[result.bytes() / 2] ^= std::byte{0xFF};
  }
}

void Verifier::check_gathered(OpId op, BufferId buffer) {
  const Buffer& gathered = program_->schedule[buffer];
  std::int64_t offset = 0;
  for (int rank = 0; rank < program_->place.ranks; ++rank) {
    for (const int parameter : parameters_of(program_->schedule, gathered)) {
      const std::int64_t shard = parameter_at(gathered.unit, parameter).shard_numel;
      report(op, offset,
             kernels::verify_values(key(gathered.unit, parameter), rank * shard,
                                    (*arenas_)[buffer].slice(offset, shard)));
      offset += shard;
    }
  }
}

void Verifier::check_unsharded(OpId op, BufferId buffer) {
  const Buffer& unsharded = program_->schedule[buffer];
  std::int64_t offset = 0;
  for (const int parameter : parameters_of(program_->schedule, unsharded)) {
    const std::int64_t padded = parameter_at(unsharded.unit, parameter).padded_numel;
    report(op, offset,
           kernels::verify_values(key(unsharded.unit, parameter), 0,
                                  (*arenas_)[buffer].slice(offset, padded)));
    offset += padded;
  }
}

void Verifier::check_reduced(OpId op, BufferId buffer, const Reduction& reduction) {
  const Buffer& from = program_->schedule[reduction.from];
  std::int64_t offset = 0;
  for (const int parameter : parameters_of(program_->schedule, from)) {
    const std::int64_t shard = parameter_at(from.unit, parameter).shard_numel;
    report(op, offset,
           kernels::verify_sums(key(from.unit, parameter), program_->place.rank * shard,
                                reduction.sum, (*arenas_)[buffer].slice(offset, shard)));
    offset += shard;
  }
}

void Verifier::fill_gradients(BufferId buffer) const {
  const Buffer& gradients = program_->schedule[buffer];
  std::int64_t offset = 0;
  for (const int parameter : parameters_of(program_->schedule, gradients)) {
    const std::int64_t numel = parameter_at(gradients.unit, parameter).numel;
    kernels::fill_gradients(key(gradients.unit, parameter), 0, program_->place.rank,
                            program_->place.ranks, (*arenas_)[buffer].slice(offset, numel));
    offset += numel;
  }
}

void Verifier::report(OpId op, std::int64_t offset,
                      const std::optional<kernels::PayloadMismatch>& mismatch) {
  if (!mismatch) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  if (mismatch_ && mismatch_->op <= op) {
    return;
  }
  const Op& where = program_->schedule[op];
  mismatch_ = DataMismatch{.rank = program_->place.rank,
                           .op = op,
                           .unit = program_->schedule.plan[where.unit].name,
                           .operation = std::string(name_of(where)),
                           .element = offset + mismatch->element,
                           .expected = static_cast<double>(mismatch->expected),
                           .found = static_cast<double>(mismatch->found)};
}

}  // namespace fsdp::mpi
