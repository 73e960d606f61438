#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/advice/bill.hpp"
#include "core/advice/detectors.hpp"
#include "core/advice/gathers.hpp"

namespace fsdp::detect {
namespace {

/// A micro-batch's backward of one unit.
using Turn = std::pair<int, UnitId>;

/// Backward computes something of the unit: gradients or products.
std::set<Turn> backward_turns(const Schedule& schedule) {
  std::set<Turn> out;
  for (const Op& op : schedule.ops) {
    if (op.phase == Phase::backward && std::holds_alternative<Compute>(op.work)) {
      out.emplace(op.micro, op.unit);
    }
  }
  return out;
}

/// A looked-up weight's gradient needs no weight. Other weights that enter no product do: a norm
/// multiplies by its own.
bool holds_only_embeddings(const ModelSpec& model, const FsdpUnit& unit) {
  return std::all_of(
      unit.parameters.begin(), unit.parameters.end(), [&](const UnitParameter& parameter) {
        const Module* module = find_module(model.root, parent_path(parameter.path));
        return module != nullptr && module->class_name.find("Embedding") != std::string::npos;
      });
}

bool is_fsdp2(const PlanEvidence& evidence) {
  return evidence.schedule.plan.policy.profile == Profile::fsdp2;
}

std::string names_of(const WrapPlan& plan, const UnitRun& run) {
  std::string out;
  for (const UnitId unit : run.units) {
    out += (out.empty() ? "" : ", ") + plan[unit].name;
  }
  return out;
}

std::string keep_sharded(const PlanEvidence& evidence, const UnitRun& run) {
  return is_fsdp2(evidence)
             ? fmt::format("keep_sharded_in_backward: [{}]  # set_unshard_in_backward(False)",
                           names_of(evidence.schedule.plan, run))
             : "leave it in the root's unit, which is not freed after forward";
}

/// Where a unit was last freed in forward, by unit; of one micro-batch.
struct Frees {
  std::map<UnitId, std::size_t> at;

  bool is_last(UnitId unit) const {
    const auto own = at.find(unit);
    return own != at.end() && std::all_of(at.begin(), at.end(), [&](const auto& other) {
             return other.second <= own->second;
           });
  }
};

/// Units with the same sizes: one's products take about as long as another's.
bool are_alike(const FsdpUnit& a, const FsdpUnit& b) {
  return a.numel == b.numel && a.parameters.size() == b.parameters.size();
}

/// A unit like `unit` computes between the two ops.
bool time_passes(const Schedule& schedule, UnitId unit, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const auto* compute = std::get_if<Compute>(&schedule.ops[i].work);
    if (compute != nullptr && !compute->gemms.empty() &&
        are_alike(schedule.plan[schedule.ops[i].unit], schedule.plan[unit])) {
      return true;
    }
  }
  return false;
}

}  // namespace

void idle_embedding_gather(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  BillByRun idle(evidence);
  for (const Gather& gather : gathers_of(schedule)) {
    if (gather.phase == Phase::backward && gather.use == Gather::Use::no_product &&
        holds_only_embeddings(evidence.model, schedule.plan[gather.unit])) {
      idle.add(gather.op);
    }
  }
  for (const auto& [run, bill] : idle.bills()) {
    out.push_back(bill.on(
        {.id = "idle_embedding_gather",
         .unit = to_text(run),
         .parameter = schedule.plan[run.first()].parameters.front().path,
         .what = fmt::format("{} is gathered again in backward, where no product reads it",
                             to_text(run)),
         .why = "the gradient of a looked-up row needs the row's index, not the table; the gather "
                "and its copy-out are for nothing",
         .bytes = {},
         .time = {},
         .remedy = keep_sharded(evidence, run)}));
  }
}

void prefetch_without_backward(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  const std::set<Turn> turns = backward_turns(schedule);
  BillByRun idle(evidence);
  for (const Gather& gather : gathers_of(schedule)) {
    if (gather.phase == Phase::backward && gather.use == Gather::Use::none &&
        !turns.contains({gather.micro, gather.unit})) {
      idle.add(gather.op);
    }
  }
  for (const auto& [run, bill] : idle.bills()) {
    out.push_back(bill.on(
        {.id = "prefetch_without_backward",
         .unit = to_text(run),
         .parameter = {},
         .what = fmt::format("{} is gathered ahead in backward, and no gradient ever reaches it",
                             to_text(run)),
         .why = "the prefetch follows forward's order backwards and does not know what is frozen; "
                "the buffer stands until the end of backward",
         .bytes = {},
         .time = {},
         .remedy = keep_sharded(evidence, run)}));
  }
}

void stray_gather(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  const std::set<Turn> turns = backward_turns(schedule);
  BillByRun stray(evidence);
  for (const Gather& gather : gathers_of(schedule)) {
    if (schedule.plan.batch.accumulate > 1 && gather.phase == Phase::backward &&
        gather.use == Gather::Use::none && turns.contains({gather.micro, gather.unit})) {
      stray.add(gather.op);
    }
  }
  for (const auto& [run, bill] : stray.bills()) {
    out.push_back(bill.on(
        {.id = "stray_gather",
         .unit = to_text(run),
         .parameter = {},
         .what = fmt::format("{} is gathered once more at the end of the last backward, after its "
                             "own turn, and never used",
                             to_text(run)),
         .why = "set_is_last_backward(False) also keeps the order list of the micro-batch before: "
                "the first unit's prefetch takes that list's last unit. In earlier micro-batches "
                "the gather only comes early, and its buffer stands through the next forward",
         .bytes = {},
         .time = {},
         .remedy = "batch: {accumulate: 1} with a larger micro_batch, wrap: {by: block} (the root "
                   "is last and kept), or leave out set_is_last_backward(False)"}));
  }
}

void freed_and_gathered_again(const PlanEvidence& evidence, Found& out) {
  const Schedule& schedule = evidence.schedule;
  BillByRun again(evidence);
  Frees frees;
  std::set<int> begun;  // micro-batches whose backward has gathered
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const auto* release = std::get_if<Free>(&op.work);
    if (release != nullptr && op.phase == Phase::forward &&
        schedule[release->buffer].kind == BufferKind::unsharded) {
      frees.at[op.unit] = i;
    } else if (std::holds_alternative<AllGather>(op.work) && op.phase == Phase::backward) {
      if (begun.insert(op.micro).second && frees.is_last(op.unit) &&
          !time_passes(schedule, op.unit, frees.at.at(op.unit), i)) {
        again.add({static_cast<std::int32_t>(i)});
      }
      frees.at.clear();
    }
  }
  for (const auto& [run, bill] : again.bills()) {
    const FsdpUnit& unit = schedule.plan[run.first()];
    const Bytes size = bytes_of(unit.padded_numel, unit.param_dtype);
    out.push_back(bill.on(
        {.id = "freed_and_gathered_again",
         .unit = run.name,
         .parameter = {},
         .what = fmt::format("{} is the last unit freed in forward and the first gathered in "
                             "backward, with no unit of its size between",
                             run.name),
         .why = fmt::format("the gather has little to hide behind; keeping the parameters holds {} "
                            "between, while activations are at their highest",
                            to_text(size)),
         .bytes = {},
         .time = {},
         .remedy = is_fsdp2(evidence)
                       ? fmt::format("reshard_units: {{{}: false}}", run.name)
                       : "sharding: shard_grad_op for this module (a CustomPolicy's kwargs)"}));
  }
}

}  // namespace fsdp::detect
