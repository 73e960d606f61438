// Times for a plan that no cluster was named for: round figures of a GPU with a 400 Gbit/s port,
// so that bytes can be compared with latencies. They are assumptions and are printed as such.
#pragma once

#include "core/model/cluster_spec.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Curves for every group of `schedule`: 20 us and 50 GB/s of bus bandwidth a collective (the rate
/// of a 400 Gbit/s port), 5 us and 2 TB/s a copy, 500 TFLOP/s of products. An all-gather or
/// reduce-scatter of S bytes over n ranks moves S (n-1)/n a rank and an all-reduce twice that
/// (nccl-tests, PERFORMANCE.md).
ClusterSpec assumed_cluster(const Schedule& schedule);

}  // namespace fsdp
