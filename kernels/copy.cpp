#include "kernels/copy.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/units/error.hpp"
#include "kernels/cast.hpp"

namespace fsdp::kernels {

std::int64_t RankMajor::row_numel() const {
  return std::accumulate(shard_numel.begin(), shard_numel.end(), std::int64_t{0});
}

void copy_in(const ConstArray& shard, int rank, const Array& gathered) {
  expects((rank + 1) * shard.numel <= gathered.numel, "copy_in: the row lies in the gather output");
  cast(shard, gathered.slice(rank * shard.numel, shard.numel));
}

void copy_out(const RankMajor& layout, const ConstArray& gathered, const Array& parameters) {
  const std::int64_t row = layout.row_numel();
  expects(gathered.dtype == parameters.dtype, "copy_out: one dtype");
  expects(gathered.numel == row * layout.ranks && parameters.numel == gathered.numel,
          "copy_out: sizes follow from the layout");
  std::int64_t offset_in_row = 0;
  std::int64_t offset = 0;
  for (const std::int64_t shard : layout.shard_numel) {
    for (int rank = 0; rank < layout.ranks && shard > 0; ++rank) {
      cast(gathered.slice(rank * row + offset_in_row, shard), parameters.slice(offset, shard));
      offset += shard;
    }
    offset_in_row += shard;
  }
}

void chunk_cat(const RankMajor& layout, std::span<const ConstArray> gradients, const Array& to) {
  const std::int64_t row = layout.row_numel();
  expects(gradients.size() == layout.shard_numel.size(), "chunk_cat: one gradient a parameter");
  expects(to.numel == row * layout.ranks, "chunk_cat: the destination follows from the layout");
  for (int rank = 0; rank < layout.ranks; ++rank) {
    std::int64_t offset = rank * row;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      const std::int64_t shard = layout.shard_numel[p];
      const std::int64_t first = std::min(rank * shard, gradients[p].numel);
      const std::int64_t present = std::min(shard, gradients[p].numel - first);
      cast(gradients[p].slice(first, present), to.slice(offset, present));
      const Array padding = to.slice(offset + present, shard - present);
      if (padding.numel > 0) {
        std::memset(padding.data, 0, padding.bytes());
      }
      offset += shard;
    }
  }
}

}  // namespace fsdp::kernels
