// The synthetic schedules that calibration runs: what has to be timed, and schedules in which
// nothing overlaps, so that every span is the cost of one operation alone. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Unit sizes that use the same element types; sizes are padded elements over the shard group.
struct SizeRange {
  DType param_dtype = DType::bf16;
  DType reduce_dtype = DType::f32;
  DType master_dtype = DType::f32;
  std::int64_t smallest = 0;
  std::int64_t largest = 0;
};

struct GemmShape {
  Gemm gemm;
  DType dtype = DType::bf16;

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

/// All that the simulator needs to know for a set of schedules.
struct CalibrationNeeds {
  DeviceMesh mesh;
  std::vector<SizeRange> sizes;  ///< one a combination of element types
  std::vector<GemmShape> gemms;  ///< distinct, ascending
};

/// Throws ContractViolation when the schedules do not share one mesh.
CalibrationNeeds calibration_needs(std::span<const Schedule* const> schedules);

/// Sizes from the smallest to the largest, evenly spaced by ratio, about one a doubling and at most
/// `limit`, each a multiple of `shard`; ascending and distinct.
std::vector<std::int64_t> sweep_sizes(const SizeRange& range, int shard, int limit);

/// One unit of one parameter with `numel` elements: its casts, copies, all-gather and
/// reduce-scatter, one after another.
Schedule size_schedule(const CalibrationNeeds& needs, const SizeRange& range, std::int64_t numel);

/// A small unit whose forward computes each shape in an op of its own, one after another. All
/// shapes must have the element type `dtype`; others are left out.
Schedule gemm_schedule(const CalibrationNeeds& needs, const SizeRange& range, DType dtype);

/// Adds edges so that every op that takes time waits for the one before it in host order.
void serialise(Schedule& schedule);

}  // namespace fsdp
