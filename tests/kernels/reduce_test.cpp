#include "kernels/reduce.hpp"

#include <gtest/gtest.h>

#include "core/units/error.hpp"
#include "tests/kernels/arrays.hpp"

namespace fsdp::kernels::test {
namespace {

float rounded(float value, DType dtype) {
  return dtype == DType::bf16 ? to_float(to_bf16(value)) : value;
}

TEST(Sum, AddsElementByElement) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t numel : {0, 1, 15, 64, 1001}) {
      Owned part = random_array(numel, dtype, 1);
      Owned total = random_array(numel, dtype, 2);
      Owned before = random_array(numel, dtype, 2);
      sum(part.view(), total.view());
      for (std::int64_t i = 0; i < numel; ++i) {
        ASSERT_EQ(total.at(i), rounded(before.at(i) + part.at(i), dtype)) << i << " of " << numel;
      }
    }
  }
}

TEST(Scale, MultipliesElementByElement) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t numel : {0, 1, 17, 1001}) {
      Owned values = random_array(numel, dtype, 3);
      Owned before = random_array(numel, dtype, 3);
      scale(values.view(), 1.0F / 3.0F);
      for (std::int64_t i = 0; i < numel; ++i) {
        ASSERT_EQ(values.at(i), rounded(before.at(i) * (1.0F / 3.0F), dtype)) << i;
      }
    }
  }
}

TEST(Reduce, RefusesOtherDtypesAndSizes) {
  Owned a(8, DType::f32);
  Owned b(8, DType::bf16);
  EXPECT_THROW(sum(a.view(), b.view()), ContractViolation);
  EXPECT_THROW(sum(a.view(), a.view().slice(0, 7)), ContractViolation);
  EXPECT_THROW(scale({a.view().data, 8, DType::f16}, 2.0F), ContractViolation);
}

}  // namespace
}  // namespace fsdp::kernels::test
