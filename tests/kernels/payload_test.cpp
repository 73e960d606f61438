#include "kernels/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/units/error.hpp"
#include "kernels/reduce.hpp"
#include "tests/kernels/arrays.hpp"

namespace fsdp::kernels::test {
namespace {

constexpr PayloadKey some_key{.unit = 3, .parameter = 2, .numel = 5000};

TEST(Payload, NumbersAreExactInBf16AndNeverZero) {
  std::set<int> values;
  for (std::int64_t i = 0; i < some_key.numel; ++i) {
    const int value = payload_value(some_key, i);
    values.insert(value);
    ASSERT_NE(value, 0);
    ASSERT_EQ(to_float(to_bf16(static_cast<float>(value))), static_cast<float>(value));
    for (const int ranks : {1, 2, 16, 100, 256}) {
      ASSERT_NE(payload_gradient(some_key, i, 0, ranks), 0);
    }
  }
  EXPECT_GT(values.size(), 300U) << "the numbers are spread";
}

TEST(Payload, EverySumIsExactInBf16InAnyOrder) {
  for (const int ranks : {1, 2, 3, 4, 8, 16, 17, 64, 256}) {
    for (std::int64_t i = 0; i < 200; ++i) {
      int magnitude = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        magnitude += std::abs(payload_gradient(some_key, i, rank, ranks));
      }
      ASSERT_LE(magnitude, 256) << ranks << " ranks: no partial sum can leave the exact range";
    }
  }
}

TEST(Payload, DependsOnUnitParameterElementAndRank) {
  const auto differing = [](const PayloadKey& a, const PayloadKey& b, std::int64_t shift) {
    int count = 0;
    for (std::int64_t i = 0; i < 1000; ++i) {
      count += payload_value(a, i) != payload_value(b, i + shift) ? 1 : 0;
    }
    return count;
  };
  constexpr PayloadKey other_unit{.unit = 4, .parameter = 2, .numel = 5000};
  constexpr PayloadKey other_parameter{.unit = 3, .parameter = 1, .numel = 5000};
  EXPECT_GT(differing(some_key, other_unit, 0), 980);
  EXPECT_GT(differing(some_key, other_parameter, 0), 980);
  EXPECT_GT(differing(some_key, some_key, 1), 980);
  int by_rank = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    by_rank += payload_gradient(some_key, i, 0, 4) != payload_gradient(some_key, i, 1, 4) ? 1 : 0;
  }
  EXPECT_GT(by_rank, 900);
}

TEST(Payload, FilledIsVerifiedAndEveryFlippedByteIsFound) {
  constexpr PayloadKey key{.unit = 0, .parameter = 1, .numel = 50};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Owned array(60, dtype);  // elements 10 .. 69: twenty of them are padding
    fill_values(key, 10, array.view());
    EXPECT_FALSE(verify_values(key, 10, array.view()));
    EXPECT_EQ(array.at(39), static_cast<float>(payload_value(key, 49)));
    EXPECT_EQ(array.at(40), 0.0F);
    for (std::size_t byte = 0; byte < array.view().bytes(); ++byte) {
      array.view().data[byte] ^= std::byte{0x01};
      const auto mismatch = verify_values(key, 10, array.view());
      ASSERT_TRUE(mismatch.has_value()) << byte;
      EXPECT_EQ(mismatch->element, static_cast<std::int64_t>(byte) / element_bytes(dtype));
      array.view().data[byte] ^= std::byte{0x01};
    }
  }
}

TEST(Payload, SumsAreWhatTheReductionMakesOfTheGradients) {
  constexpr PayloadKey key{.unit = 1, .parameter = 0, .numel = 90};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int ranks : {1, 2, 3, 5, 16}) {
      for (const float factor : {1.0F, 1.0F / static_cast<float>(ranks), -0.3F}) {
        Owned total(100, dtype);
        fill_gradients(key, 0, 0, ranks, total.view());
        for (int rank = 1; rank < ranks; ++rank) {
          Owned part(100, dtype);
          fill_gradients(key, 0, rank, ranks, part.view());
          sum(part.view(), total.view());
        }
        scale(total.view(), factor);
        const PayloadSum how{.ranks = ranks, .factor = factor, .dtype = dtype};
        EXPECT_FALSE(verify_sums(key, 0, how, total.view())) << ranks << " x " << factor;
        total.set(7, total.at(7) + 1.0F);
        const auto mismatch = verify_sums(key, 0, how, total.view());
        ASSERT_TRUE(mismatch.has_value());
        EXPECT_EQ(mismatch->element, 7);
      }
    }
  }
}

TEST(Payload, RefusesGroupsWhoseSumsAreNotExact) {
  Owned total(4, DType::f32);
  EXPECT_THROW(verify_sums(some_key, 0, {.ranks = 257}, total.view()), ContractViolation);
}

TEST(Payload, PoisonIsNaNInEveryType) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Owned array = random_array(9, dtype, 1);
    poison(array.view());
    for (std::int64_t i = 0; i < 9; ++i) {
      EXPECT_TRUE(std::isnan(array.at(i)));
    }
    EXPECT_TRUE(verify_values(some_key, 0, array.view()).has_value());
  }
}

}  // namespace
}  // namespace fsdp::kernels::test
