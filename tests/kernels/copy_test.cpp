#include "kernels/copy.hpp"

#include <gtest/gtest.h>

#include "core/units/error.hpp"
#include "tests/kernels/arrays.hpp"

namespace fsdp::kernels::test {
namespace {

/// Parameters of (rows, row elements), as a unit holds them over `ranks` ranks.
struct Layout {
  int ranks = 1;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> row_numel;
  std::vector<std::int64_t> shard_numel;  ///< ceil(rows / ranks) * row_numel

  std::int64_t total() const { return RankMajor{ranks, shard_numel}.row_numel() * ranks; }
};

/// Rows that the ranks divide, do not divide, and fewer rows than ranks: empty shards.
Layout random_layout(unsigned seed) {
  std::mt19937 bits(seed);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(bits);
  };
  Layout layout;
  layout.ranks = between(1, 7);
  const int parameters = between(1, 6);
  for (int p = 0; p < parameters; ++p) {
    const auto rows = static_cast<std::int64_t>(between(1, 20));
    const auto row = static_cast<std::int64_t>(between(1, 9));
    layout.rows.push_back(rows);
    layout.row_numel.push_back(row);
    layout.shard_numel.push_back((rows + layout.ranks - 1) / layout.ranks * row);
  }
  return layout;
}

TEST(CopyIn, WritesTheOwnRowOnlyAndConverts) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Owned shard = random_array(13, DType::f32, 5);
    Owned gathered(39, dtype);
    copy_in(shard.view(), 1, gathered.view());
    for (std::int64_t i = 0; i < 13; ++i) {
      const float expected = dtype == DType::bf16 ? to_float(to_bf16(shard.at(i))) : shard.at(i);
      EXPECT_EQ(gathered.at(13 + i), expected);
      EXPECT_NE(gathered.at(i), gathered.at(i)) << "the rows of others stay as they were";
      EXPECT_NE(gathered.at(26 + i), gathered.at(26 + i));
    }
    EXPECT_THROW(copy_in(shard.view(), 3, gathered.view()), ContractViolation);
  }
}

TEST(CopyOut, AgreesWithElementByElement) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Layout layout = random_layout(seed);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Owned gathered = random_array(layout.total(), dtype, seed);
      Owned parameters(layout.total(), dtype);
      copy_out({layout.ranks, layout.shard_numel}, gathered.view(), parameters.view());
      std::int64_t out = 0;
      std::int64_t before = 0;
      for (const std::int64_t shard : layout.shard_numel) {
        for (std::int64_t i = 0; i < shard * layout.ranks; ++i, ++out) {
          const std::int64_t rank = i / shard;
          const std::int64_t in = rank * (layout.total() / layout.ranks) + before + i % shard;
          ASSERT_EQ(parameters.at(out), gathered.at(in)) << "seed " << seed << " element " << out;
        }
        before += shard;
      }
    }
  }
}

TEST(CopyOut, RefusesSizesThatDoNotFit) {
  const std::vector<std::int64_t> shards{4, 6};
  Owned gathered(20, DType::f32);
  Owned parameters(19, DType::f32);
  EXPECT_THROW(copy_out({2, shards}, gathered.view(), parameters.view()), ContractViolation);
}

TEST(ChunkCat, AgreesWithElementByElement) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Layout layout = random_layout(seed);
    const DType from = seed % 2 == 0 ? DType::bf16 : DType::f32;
    const DType to = seed % 3 == 0 ? DType::bf16 : DType::f32;
    std::vector<Owned> gradients;
    std::vector<ConstArray> views;
    for (std::size_t p = 0; p < layout.rows.size(); ++p) {
      gradients.push_back(random_array(layout.rows[p] * layout.row_numel[p], from, seed + 9));
    }
    views.reserve(gradients.size());
    for (Owned& gradient : gradients) {
      views.emplace_back(gradient.view());
    }
    Owned packed(layout.total(), to);
    chunk_cat({layout.ranks, layout.shard_numel}, views, packed.view());
    std::int64_t at = 0;
    for (std::int64_t rank = 0; rank < layout.ranks; ++rank) {
      for (std::size_t p = 0; p < gradients.size(); ++p) {
        for (std::int64_t i = 0; i < layout.shard_numel[p]; ++i, ++at) {
          const std::int64_t in = rank * layout.shard_numel[p] + i;
          const float value = in < views[p].numel ? gradients[p].at(in) : 0.0F;
          const float expected = to == DType::bf16 ? to_float(to_bf16(value)) : value;
          ASSERT_EQ(packed.at(at), expected) << "seed " << seed << " element " << at;
        }
      }
    }
  }
}

TEST(ChunkCat, ARankBeyondTheLastRowGetsZerosOnly) {
  const std::vector<std::int64_t> shards{2};  // 3 rows of 2 over 4 ranks: the last has none
  Owned gradient = random_array(6, DType::bf16, 3);
  const std::vector<ConstArray> views{gradient.view()};
  Owned packed(8, DType::f32);
  chunk_cat({4, shards}, views, packed.view());
  EXPECT_EQ(packed.at(5), gradient.at(5));
  EXPECT_EQ(packed.at(6), 0.0F);
  EXPECT_EQ(packed.at(7), 0.0F);
}

}  // namespace
}  // namespace fsdp::kernels::test
