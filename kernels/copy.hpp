// FSDP's copies around its two collectives, on the CPU. Every rank holds `shard_numel[p]` elements
// of parameter p (its rows, padded), one parameter after another; W ranks make a rank-major (W, sum
// of shards) buffer.
#pragma once

#include <span>

#include "kernels/array.hpp"

namespace fsdp::kernels {

/// How a buffer of several parameters is cut into ranks.
struct RankMajor {
  int ranks = 1;
  std::span<const std::int64_t> shard_numel;  ///< by parameter

  std::int64_t row_numel() const;  ///< elements of one rank
};

/// The own shard into its row of the gather's output, widened or narrowed when the dtypes differ.
void copy_in(const ConstArray& shard, int rank, const Array& gathered);

/// Rank-major gather output to parameter-major: parameter p as W consecutive shards. Same dtype.
void copy_out(const RankMajor& layout, const ConstArray& gathered, const Array& parameters);

/// Whole gradients, unpadded, to the rank-major reduce-scatter input: missing rows become zeros and
/// the dtype becomes that of `to`. `gradients[p]` belongs to `layout.shard_numel[p]`.
void chunk_cat(const RankMajor& layout, std::span<const ConstArray> gradients, const Array& to);

}  // namespace fsdp::kernels
