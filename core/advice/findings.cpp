#include <algorithm>
#include <array>

#include "core/advice/detectors.hpp"
#include "core/units/error.hpp"

namespace fsdp {

std::vector<Finding> findings(const PlanEvidence& evidence) {
  static constexpr std::array detectors{
      detect::one_unit,
      detect::largest_root,
      detect::size_remainder,
      detect::unwrappable_lists,
      detect::untied_weights,
      detect::idle_embedding_gather,
      detect::prefetch_without_backward,
      detect::stray_gather,
      detect::freed_and_gathered_again,
      detect::three_buffers,
      detect::padded_gather,
      detect::misaligned_shard,
      detect::wide_reduction,
      detect::reduced_frozen,
  };
  expects(evidence.op_times.empty() || evidence.op_times.size() == evidence.schedule.ops.size(),
          "one time an op, or none");
  std::vector<Finding> out;
  for (const auto detector : detectors) {
    detector(evidence, out);
  }
  std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.bytes > b.bytes;
  });
  return out;
}

std::string_view to_text(Finding::Cost cost) {
  return cost == Finding::Cost::moved ? "moved" : "held";
}

}  // namespace fsdp
