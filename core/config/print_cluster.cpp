#include <fmt/format.h>

#include "core/config/run_config.hpp"
#include "core/config/yaml_text.hpp"

namespace fsdp {
namespace {

std::string points_text(const CostCurve& curve) {
  std::string text;
  for (const CostCurve::Point& point : curve.points) {
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", yaml_bytes(point.bytes),
                        yaml_duration(point.time));
  }
  return "[" + text + "]";
}

}  // namespace

std::string print_cluster(const ClusterSpec& cluster) {
  std::string text = fmt::format("name: {}\norigin: {}\nranks: {}\n", yaml_string(cluster.name),
                                 yaml_string(cluster.origin), cluster.ranks);
  text += cluster.collectives.empty() ? "" : "collectives:\n";
  for (const CollectiveCurve& curve : cluster.collectives) {
    text += fmt::format("  - {{kind: {}, dtype: {}, ranks: {}, points: {}}}\n", to_text(curve.kind),
                        to_text(curve.dtype), curve.ranks, points_text(curve.curve));
  }
  text += cluster.copies.empty() ? "" : "copies:\n";
  for (const CopyCurve& curve : cluster.copies) {
    text += fmt::format("  - {{kind: {}, points: {}}}\n", to_text(curve.kind),
                        points_text(curve.curve));
  }
  text += cluster.gemms.empty() ? "" : "gemms:\n";
  for (const GemmCost& cost : cluster.gemms) {
    text += fmt::format("  - {{batch: {}, m: {}, n: {}, k: {}, dtype: {}, time: {}}}\n",
                        cost.gemm.batch, cost.gemm.m, cost.gemm.n, cost.gemm.k, to_text(cost.dtype),
                        yaml_duration(cost.time));
  }
  text += fmt::format("gemm_rate: {}\ngemm_latency: {}\nissue_cost: {}\n",
                      yaml_flops_per_second(cluster.gemm_rate), yaml_duration(cluster.gemm_latency),
                      yaml_duration(cluster.issue_cost));
  return text;
}

}  // namespace fsdp
