#include "core/units/quantity.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace fsdp {
namespace {

TEST(Quantity, ArithmeticStaysInsideOneUnit) {
  Bytes total{10};
  total += Bytes{5};
  total -= Bytes{3};
  EXPECT_EQ(total, Bytes{12});
  EXPECT_EQ(Nanoseconds{4} * 3, Nanoseconds{12});
  EXPECT_LT(Nanoseconds{4} - Nanoseconds{5}, Nanoseconds{0});
}

TEST(BytesText, WholeValuesHaveNoDecimalsOthersHaveTwo) {
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(Bytes{96}), "96 B");
  EXPECT_EQ(to_text(Bytes{1023}), "1023 B");
  EXPECT_EQ(to_text(Bytes{1024}), "1 KiB");
  EXPECT_EQ(to_text(Bytes{26214400}), "25 MiB");
  EXPECT_EQ(to_text(Bytes{1610612736}), "1.50 GiB");
  EXPECT_EQ(to_text(Bytes{-1536}), "-1.50 KiB");
}

TEST(BytesText, RoundingNeverPrintsAThousandAndTwentyFour) {
  EXPECT_EQ(to_text(Bytes{1048575}), "1.00 MiB");
  EXPECT_EQ(to_text(Bytes{1073741823}), "1.00 GiB");
}

TEST(BytesText, ExtremesOfTheTypeDoNotOverflow) {
  EXPECT_EQ(to_text(Bytes{std::numeric_limits<std::int64_t>::max()}), "8192 PiB");
  EXPECT_EQ(to_text(Bytes{std::numeric_limits<std::int64_t>::min()}), "-8192 PiB");
}

TEST(TimeText, ThreeSignificantDigits) {
  EXPECT_EQ(to_text(Nanoseconds{0}), "0 ns");
  EXPECT_EQ(to_text(Nanoseconds{3}), "3 ns");
  EXPECT_EQ(to_text(Nanoseconds{850000}), "850 us");
  EXPECT_EQ(to_text(Nanoseconds{12412345}), "12.4 ms");
  EXPECT_EQ(to_text(Nanoseconds{999600}), "1 ms");
  EXPECT_EQ(to_text(Nanoseconds{1500000000}), "1.5 s");
  EXPECT_EQ(to_text(Nanoseconds{600000000000}), "600 s");
  EXPECT_EQ(to_text(Nanoseconds{-2500}), "-2.5 us");
}

TEST(RateText, DecimalPrefixes) {
  EXPECT_EQ(to_text(BytesPerSecond{50e9}), "50 GB/s");
  EXPECT_EQ(to_text(BytesPerSecond{999.9e6}), "1 GB/s");
  EXPECT_EQ(to_text(FlopsPerSecond{245e9}), "245 GFLOP/s");
  EXPECT_EQ(to_text(FlopsPerSecond{1.2345e15}), "1.23 PFLOP/s");
}

}  // namespace
}  // namespace fsdp
