#include "core/units/dtype.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

constexpr DType all_dtypes[] = {DType::f32, DType::bf16, DType::f16, DType::u8, DType::i64};

TEST(DType, TextRoundTrips) {
  for (const DType dtype : all_dtypes) {
    EXPECT_EQ(dtype_from_text(to_text(dtype)), dtype);
  }
}

TEST(DType, UnknownTextIsNoDType) {
  EXPECT_EQ(dtype_from_text("float32"), std::nullopt);
  EXPECT_EQ(dtype_from_text("BF16"), std::nullopt);
  EXPECT_EQ(dtype_from_text(""), std::nullopt);
}

TEST(DType, ElementBytes) {
  EXPECT_EQ(element_bytes(DType::f32), 4);
  EXPECT_EQ(element_bytes(DType::bf16), 2);
  EXPECT_EQ(element_bytes(DType::f16), 2);
  EXPECT_EQ(element_bytes(DType::u8), 1);
  EXPECT_EQ(element_bytes(DType::i64), 8);
  EXPECT_EQ(bytes_of(52428800, DType::bf16), Bytes{104857600});
}

}  // namespace
}  // namespace fsdp
