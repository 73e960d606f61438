#include "core/units/dtype.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

TEST(DType, TextRoundTrips) {
  EXPECT_EQ(dtype_texts().size(), 7U);
  for (const std::string_view text : dtype_texts()) {
    ASSERT_TRUE(dtype_from_text(text)) << text;
    EXPECT_EQ(to_text(*dtype_from_text(text)), text);
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
  EXPECT_EQ(element_bytes(DType::f8_e4m3), 1);
  EXPECT_EQ(element_bytes(DType::f8_e5m2), 1);
  EXPECT_EQ(element_bytes(DType::u8), 1);
  EXPECT_EQ(element_bytes(DType::i64), 8);
  EXPECT_EQ(bytes_of(52428800, DType::bf16), Bytes{104857600});
}

}  // namespace
}  // namespace fsdp
