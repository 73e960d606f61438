#include "kernels/cast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/units/error.hpp"
#include "tests/kernels/arrays.hpp"

namespace fsdp::kernels::test {
namespace {

/// Rounds by looking at the two neighbours in double, nothing of the bit tricks.
float nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto below = std::bit_cast<float>(bits & 0xFFFF0000U);
  const auto above = std::bit_cast<float>((bits & 0xFFFF0000U) + 0x00010000U);
  const double to_below = std::abs(static_cast<double>(value) - static_cast<double>(below));
  const double to_above = std::abs(static_cast<double>(above) - static_cast<double>(value));
  if (to_below != to_above) {
    return to_below < to_above ? below : above;
  }
  const bool below_is_even = ((bits >> 16U) & 1U) == 0;
  return below_is_even ? below : above;
}

TEST(Cast, NarrowsToTheNearestAndTiesToEven) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Owned from = random_array(1003, DType::f32, seed);
    // Exact ties between two neighbours, in both directions.
    for (std::int64_t i = 0; i < 500; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(from.at(i));
      from.set(i, std::bit_cast<float>((bits & 0xFFFF0000U) | 0x8000U));
    }
    Owned to(1003, DType::bf16);
    cast(from.view(), to.view());
    for (std::int64_t i = 0; i < 1003; ++i) {
      ASSERT_EQ(to.at(i), nearest_bf16(from.at(i))) << "seed " << seed << " element " << i;
    }
  }
}

TEST(Cast, KeepsWhatHasNoNeighbour) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Owned from(6, DType::f32);
  from.set(0, infinity);
  from.set(1, -infinity);
  from.set(2, std::bit_cast<float>(0x7F800001U));  // a NaN whose upper half looks like infinity
  from.set(3, -0.0F);
  from.set(4, std::numeric_limits<float>::max());  // rounds up to infinity
  from.set(5, std::numeric_limits<float>::denorm_min());
  Owned to(6, DType::bf16);
  cast(from.view(), to.view());
  EXPECT_EQ(to.at(0), infinity);
  EXPECT_EQ(to.at(1), -infinity);
  EXPECT_TRUE(std::isnan(to.at(2)));
  EXPECT_TRUE(std::signbit(to.at(3)));
  EXPECT_EQ(to.at(4), infinity);
  EXPECT_EQ(to.at(5), 0.0F);
}

TEST(Cast, WideningAndBackIsTheIdentityForEveryBf16) {
  constexpr std::int64_t all = 1 << 16;
  Owned from(all, DType::bf16);
  for (std::int64_t i = 0; i < all; ++i) {
    from.view().bf16s()[i].bits = static_cast<std::uint16_t>(i);
  }
  Owned wide(all, DType::f32);
  Owned back(all, DType::bf16);
  cast(from.view(), wide.view());
  cast(wide.view(), back.view());
  for (std::int64_t i = 0; i < all; ++i) {
    if (std::isnan(from.at(i))) {
      ASSERT_TRUE(std::isnan(back.at(i)));
    } else {
      ASSERT_EQ(back.view().bf16s()[i].bits, from.view().bf16s()[i].bits);
    }
  }
}

TEST(Cast, SameDtypeIsACopyAndEmptyIsNothing) {
  Owned from = random_array(77, DType::bf16, 1);
  Owned to(77, DType::bf16);
  cast(from.view(), to.view());
  EXPECT_TRUE(same_bytes(from.view(), to.view()));
  cast({nullptr, 0, DType::f32}, {nullptr, 0, DType::bf16});
  EXPECT_THROW(cast(from.view(), to.view().slice(0, 76)), ContractViolation);
  EXPECT_THROW(cast(from.view(), {to.view().data, 77, DType::f16}), ContractViolation);
}

}  // namespace
}  // namespace fsdp::kernels::test
