#include "core/model/cluster_spec.hpp"

#include <algorithm>
#include <cmath>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// The line through two points at `bytes`, never below zero.
Nanoseconds on_line(const CostCurve::Point& a, const CostCurve::Point& b, Bytes bytes) {
  const double slope = static_cast<double>(b.time.value - a.time.value) /
                       static_cast<double>(b.bytes.value - a.bytes.value);
  const double time =
      static_cast<double>(a.time.value) + slope * static_cast<double>(bytes.value - a.bytes.value);
  return {std::max<std::int64_t>(0, std::llround(time))};
}

}  // namespace

Nanoseconds CostCurve::at(Bytes bytes) const {
  expects(!points.empty(), "a cost curve has at least one point");
  if (points.size() == 1 || bytes <= points.front().bytes) {
    return points.front().time;
  }
  const auto above = std::upper_bound(points.begin(), points.end(), bytes,
                                      [](Bytes b, const Point& p) { return b < p.bytes; });
  if (above == points.end()) {
    // A last slope that falls is noise of the sweep; time never falls with size beyond it.
    return std::max(points.back().time, on_line(*(above - 2), *(above - 1), bytes));
  }
  return on_line(*(above - 1), *above, bytes);
}

std::string_view to_text(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_reduce:
      return "all_reduce";
  }
  return "?";
}

std::string_view to_text(CopyKind kind) {
  switch (kind) {
    case CopyKind::cast:
      return "cast";
    case CopyKind::copy_in:
      return "copy_in";
    case CopyKind::copy_out:
      return "copy_out";
    case CopyKind::chunk_cat:
      return "chunk_cat";
  }
  return "?";
}

}  // namespace fsdp
