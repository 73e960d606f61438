#include "bench/calibrate/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {

namespace {

using Types = std::tuple<DType, DType, DType>;

bool takes_time(const Op& op) {
  return !std::holds_alternative<Allocate>(op.work) && !std::holds_alternative<Free>(op.work);
}

FsdpPolicy kept_unit(const SizeRange& range) {
  FsdpPolicy policy;
  policy.wrap = WrapNone{};
  policy.reshard_after_forward = Reshard::keep();  // one gather a step is enough to time it
  policy.param_dtype = range.param_dtype;
  policy.reduce_dtype = range.reduce_dtype;
  return policy;
}

/// A plan with one unit of one parameter; the caller says what it computes.
WrapPlan one_unit(const CalibrationNeeds& needs, const SizeRange& range, std::int64_t numel) {
  ModelSpec model;
  model.root.class_name = "Sweep";
  model.root.parameters = {
      {.name = "weight", .shape = {numel}, .dtype = range.master_dtype, .tied_to = {}}};
  model.calls = {{.module = "", .input_requires_grad = true}};
  WrapPlan plan = plan_units(model, kept_unit(range), needs.mesh, {});
  plan.trace.clear();
  return plan;
}

Schedule serial_schedule(const WrapPlan& plan) {
  Schedule schedule = build_schedule(plan);
  serialise(schedule);
  return schedule;
}

void trace_step(WrapPlan& plan, TraceStep::Kind kind, std::vector<Gemm> forward,
                std::vector<int> gradients) {
  TraceStep step;
  step.kind = kind;
  step.unit = UnitId{0};
  step.requires_grad = true;  // else backward would not reach the unit, nor reduce it
  step.forward = std::move(forward);
  step.gradients = std::move(gradients);
  plan.trace.push_back(std::move(step));
}

}  // namespace

CalibrationNeeds calibration_needs(std::span<const Schedule* const> schedules) {
  CalibrationNeeds needs;
  std::map<Types, SizeRange> ranges;
  std::set<GemmShape> shapes;
  for (const Schedule* schedule : schedules) {
    const DeviceMesh& mesh = schedule->plan.mesh;
    expects(schedule == schedules.front() ||
                (mesh.shard == needs.mesh.shard && mesh.replicate == needs.mesh.replicate),
            "all schedules of one calibration use one mesh");
    needs.mesh = mesh;
    for (const FsdpUnit& unit : schedule->plan.units) {
      const SizeRange own{unit.param_dtype, unit.reduce_dtype, unit.master_dtype, unit.padded_numel,
                          unit.padded_numel};
      const Types types{unit.param_dtype, unit.reduce_dtype, unit.master_dtype};
      SizeRange& range = ranges.try_emplace(types, own).first->second;
      range.smallest = std::min(range.smallest, unit.padded_numel);
      range.largest = std::max(range.largest, unit.padded_numel);
    }
    for (const Op& op : schedule->ops) {
      if (const auto* compute = std::get_if<Compute>(&op.work)) {
        for (const Gemm& gemm : compute->gemms) {
          shapes.insert({gemm, compute->dtype});
        }
      }
    }
  }
  for (const auto& [types, range] : ranges) {
    needs.sizes.push_back(range);
  }
  needs.gemms.assign(shapes.begin(), shapes.end());
  return needs;
}

std::vector<std::int64_t> sweep_sizes(const SizeRange& range, int shard, int limit) {
  expects(range.smallest >= 0 && range.smallest <= range.largest, "a size range ascends");
  const auto rounded = [shard](double numel) {
    const auto rows = static_cast<std::int64_t>(std::ceil(numel / shard));
    return std::max<std::int64_t>(rows, 1) * shard;
  };
  const double smallest = std::max(1.0, static_cast<double>(range.smallest));
  const double largest = std::max(1.0, static_cast<double>(range.largest));
  const int doublings = static_cast<int>(std::ceil(std::log2(largest / smallest) - 1e-9));
  const int steps = std::min(doublings, limit - 1);
  std::vector<std::int64_t> sizes{rounded(smallest)};
  for (int i = 1; i <= steps; ++i) {
    const double numel = smallest * std::pow(largest / smallest, static_cast<double>(i) / steps);
    // The last size is the range's own, not what rounding of the power made of it.
    const std::int64_t size = rounded(i == steps ? largest : std::floor(numel));
    if (size > sizes.back()) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

Schedule size_schedule(const CalibrationNeeds& needs, const SizeRange& range, std::int64_t numel) {
  WrapPlan plan = one_unit(needs, range, numel);
  trace_step(plan, TraceStep::Kind::enter, {}, {});
  trace_step(plan, TraceStep::Kind::compute, {}, {0});
  trace_step(plan, TraceStep::Kind::exit, {}, {});
  return serial_schedule(plan);
}

Schedule gemm_schedule(const CalibrationNeeds& needs, const SizeRange& range, DType dtype) {
  // The computing dtype is the unit's parameter dtype, so the unit takes the asked one.
  SizeRange own = range;
  own.param_dtype = dtype;
  constexpr std::int64_t rows_a_rank = 64;
  WrapPlan plan = one_unit(needs, own, rows_a_rank * needs.mesh.shard);
  trace_step(plan, TraceStep::Kind::enter, {}, {});
  trace_step(plan, TraceStep::Kind::compute, {}, {0});
  for (const GemmShape& shape : needs.gemms) {
    if (shape.dtype == dtype) {
      trace_step(plan, TraceStep::Kind::compute, {shape.gemm}, {});
    }
  }
  trace_step(plan, TraceStep::Kind::exit, {}, {});
  return serial_schedule(plan);
}

void serialise(Schedule& schedule) {
  std::optional<OpId> before;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    Op& op = schedule.ops[i];
    if (!takes_time(op)) {
      continue;
    }
    if (before && schedule[*before].stream != op.stream &&
        std::find(op.after.begin(), op.after.end(), *before) == op.after.end()) {
      op.after.push_back(*before);
      std::sort(op.after.begin(), op.after.end());
    }
    before = OpId{static_cast<std::int32_t>(i)};
  }
}

}  // namespace fsdp
