// A cluster with simple round costs, for tests of the simulator.
#pragma once

#include "core/model/cluster_spec.hpp"

namespace fsdp::test {

/// A straight line: `latency` plus bytes at `bytes_per_us`.
inline CostCurve line(std::int64_t latency_ns, std::int64_t bytes_per_us) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  return {.points = {{{0}, {latency_ns}}, {{bytes}, {latency_ns + bytes * 1000 / bytes_per_us}}}};
}

inline ClusterSpec cluster(int ranks) {
  ClusterSpec out;
  out.name = "test";
  out.origin = "made up for tests";
  out.ranks = ranks;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    out.collectives.push_back(
        {.kind = kind, .dtype = DType::bf16, .ranks = ranks, .curve = line(20'000, 10'000)});
  }
  for (const CopyKind kind :
       {CopyKind::cast, CopyKind::copy_in, CopyKind::copy_out, CopyKind::chunk_cat}) {
    out.copies.push_back({.kind = kind, .curve = line(1'000, 100'000)});
  }
  return out;
}

}  // namespace fsdp::test
