#include "core/config/read_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/config/files.hpp"

namespace fsdp {
namespace {

constexpr IntegerRange ranks_range{1, 1 << 20};
constexpr IntegerRange extent_range{1, std::int64_t{1} << 32};

DType read_dtype(const YamlReader& value) {
  return value.dtype({DType::f32, DType::bf16, DType::f16});
}

CostCurve read_points(const YamlReader& list) {
  CostCurve curve;
  for (const YamlReader& item : list.items()) {
    const std::vector<YamlReader> pair = item.items();
    if (pair.size() != 2) {
      item.fail("must be a pair of size and time", "write [1 MiB, 20 us]");
    }
    const CostCurve::Point point{.bytes = pair[0].bytes(), .time = pair[1].duration()};
    if (!curve.points.empty() && point.bytes <= curve.points.back().bytes) {
      item.fail("sizes must ascend");
    }
    curve.points.push_back(point);
  }
  return curve;
}

CollectiveCurve read_collective(const YamlReader& map, int ranks) {
  map.expect_map({.known = {"kind", "dtype", "ranks", "points"}, .later = {}});
  CollectiveCurve curve;
  curve.kind =
      map.at("kind").choice<CollectiveKind>({{"all_gather", CollectiveKind::all_gather},
                                             {"reduce_scatter", CollectiveKind::reduce_scatter},
                                             {"all_reduce", CollectiveKind::all_reduce}});
  curve.dtype = read_dtype(map.at("dtype"));
  const auto group = map.find("ranks");
  curve.ranks = group ? static_cast<int>(group->integer(ranks_range)) : ranks;
  curve.curve = read_points(map.at("points"));
  return curve;
}

std::vector<CollectiveCurve> read_collectives(const YamlReader& list, int ranks) {
  std::vector<CollectiveCurve> curves;
  for (const YamlReader& item : list.items()) {
    CollectiveCurve curve = read_collective(item, ranks);
    const bool repeated =
        std::any_of(curves.begin(), curves.end(), [&curve](const CollectiveCurve& other) {
          return other.kind == curve.kind && other.dtype == curve.dtype &&
                 other.ranks == curve.ranks;
        });
    if (repeated) {
      item.fail("a second curve of the same kind, dtype and ranks");
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<CopyCurve> read_copies(const YamlReader& list) {
  std::vector<CopyCurve> curves;
  for (const YamlReader& item : list.items()) {
    item.expect_map({.known = {"kind", "points"}, .later = {}});
    CopyCurve curve;
    curve.kind = item.at("kind").choice<CopyKind>({{"cast", CopyKind::cast},
                                                   {"copy_in", CopyKind::copy_in},
                                                   {"copy_out", CopyKind::copy_out},
                                                   {"chunk_cat", CopyKind::chunk_cat}});
    if (std::any_of(curves.begin(), curves.end(),
                    [&curve](const CopyCurve& other) { return other.kind == curve.kind; })) {
      item.fail("a second curve of the same kind");
    }
    curve.curve = read_points(item.at("points"));
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<GemmCost> read_gemms(const YamlReader& list) {
  std::vector<GemmCost> costs;
  for (const YamlReader& item : list.items()) {
    item.expect_map({.known = {"batch", "m", "n", "k", "dtype", "time"}, .later = {}});
    GemmCost cost;
    if (const auto batch = item.find("batch")) {
      cost.gemm.batch = batch->integer(extent_range);
    }
    cost.gemm.m = item.at("m").integer(extent_range);
    cost.gemm.n = item.at("n").integer(extent_range);
    cost.gemm.k = item.at("k").integer(extent_range);
    cost.dtype = read_dtype(item.at("dtype"));
    cost.time = item.at("time").duration();
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace

ClusterSpec read_cluster(const YamlReader& map) {
  map.expect_map({.known = {"name", "origin", "ranks", "collectives", "copies", "gemms",
                            "gemm_rate", "gemm_latency", "issue_cost"},
                  .later = {}});
  ClusterSpec cluster;
  cluster.name = map.at("name").text();
  cluster.origin = map.at("origin").text();
  cluster.ranks = static_cast<int>(map.at("ranks").integer(ranks_range));
  // One rank alone moves nothing; every other cluster must say what moving costs.
  if (cluster.ranks > 1 || map.find("collectives")) {
    cluster.collectives = read_collectives(map.at("collectives"), cluster.ranks);
  }
  if (const auto copies = map.find("copies")) {
    cluster.copies = read_copies(*copies);
  }
  if (const auto gemms = map.find("gemms")) {
    cluster.gemms = read_gemms(*gemms);
  }
  const YamlReader rate = map.at("gemm_rate");
  cluster.gemm_rate = rate.flops_per_second();
  if (cluster.gemm_rate.value < 1.0) {
    rate.fail("must be at least 1 FLOP/s");
  }
  if (const auto value = map.find("gemm_latency")) {
    cluster.gemm_latency = value->duration();
  }
  if (const auto value = map.find("issue_cost")) {
    cluster.issue_cost = value->duration();
  }
  return cluster;
}

ClusterSpec read_cluster_value(const YamlReader& value) {
  if (value.kind() == YamlReader::Kind::map) {
    return read_cluster(value);
  }
  const TextFile file = read_named_file(value);
  return read_cluster(YamlReader::parse(file.text, file.path));
}

ClusterSpec load_cluster(const std::string& path) {
  const TextFile file = read_text_file(path);
  return read_cluster(YamlReader::parse(file.text, file.path));
}

}  // namespace fsdp
