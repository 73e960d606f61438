// What a machine costs: collectives by size, matrix products by shape, copies by size. Calibrated
// on the spot or read from configs/clusters; `origin` says which and is printed with everything
// that follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/gemm.hpp"
#include "core/units/dtype.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// Time as a piece-wise linear function of bytes. Points ascend strictly in bytes.
/// Below the first point the first time holds; beyond the last one the last slope continues.
struct CostCurve {
  struct Point {
    Bytes bytes;
    Nanoseconds time;
  };
  std::vector<Point> points;

  Nanoseconds at(Bytes bytes) const;
};

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce };

/// Cost of one collective; `bytes` on the curve is the full (gathered or scattered) buffer.
struct CollectiveCurve {
  CollectiveKind kind = CollectiveKind::all_gather;
  DType dtype = DType::f32;
  int ranks = 1;
  CostCurve curve;
};

enum class CopyKind { cast, copy_in, copy_out, chunk_cat };

/// Cost of one of FSDP's copies; `bytes` on the curve is the destination buffer.
struct CopyCurve {
  CopyKind kind = CopyKind::copy_in;
  CostCurve curve;
};

struct GemmCost {
  Gemm gemm;
  DType dtype = DType::f32;
  Nanoseconds time;
};

struct ClusterSpec {
  std::string name;
  std::string origin;  ///< "calibrated on this machine", "published, not measured by us: SOURCE",
                       ///< "illustrative"
  int ranks = 1;
  std::vector<CollectiveCurve> collectives;
  std::vector<CopyCurve> copies;
  std::vector<GemmCost> gemms;       ///< exact shapes that were measured
  FlopsPerSecond gemm_rate{1.0e12};  ///< for shapes that were not
  Nanoseconds gemm_latency{0};       ///< added a product, for shapes that were not
  Nanoseconds issue_cost{0};         ///< host time to issue one operation
};

std::string_view to_text(CollectiveKind kind);
std::string_view to_text(CopyKind kind);

}  // namespace fsdp
