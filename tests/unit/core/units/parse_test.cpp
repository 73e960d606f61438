#include "core/units/parse.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

TEST(ParseBytes, BinaryAndDecimalPrefixesMeanWhatTheySay) {
  EXPECT_EQ(parse_bytes("25 MiB").value, Bytes{26214400});
  EXPECT_EQ(parse_bytes("25 MB").value, Bytes{25000000});
  EXPECT_EQ(parse_bytes("1e9 B").value, Bytes{1000000000});
  EXPECT_EQ(parse_bytes("80 GB").value, Bytes{80000000000});
  EXPECT_EQ(parse_bytes("1.5 KiB").value, Bytes{1536});
  EXPECT_EQ(parse_bytes("  4GiB ").value, Bytes{4294967296});
  EXPECT_EQ(parse_bytes("0 B").value, Bytes{0});
  EXPECT_EQ(parse_bytes("2 TiB").value, Bytes{2199023255552});
}

struct BadText {
  const char* text;
  const char* fragment;
};

TEST(ParseBytes, ReasonsNameTheMistake) {
  constexpr BadText cases[] = {{"80", "needs a unit: B, KiB, MiB, GiB"},
                               {"80 gb", "unknown unit 'gb'"},
                               {"80 GBit", "unknown unit 'GBit'"},
                               {"-1 GiB", "must not be negative"},
                               {"-0 GiB", "must not be negative"},
                               {"", "is not a number with a unit"},
                               {"GiB", "is not a number with a unit"},
                               {"nan GiB", "is not a number with a unit"},
                               {"inf GiB", "is not a number with a unit"},
                               {"1e400 GiB", "out of range"},
                               {"1e30 GiB", "too large"},
                               {"1e300 PiB", "too large"},
                               {"0.2 B", "less than one B"},
                               {"1 GiB GiB", "unknown unit 'GiB GiB'"}};
  for (const BadText& bad : cases) {
    const Parsed<Bytes> parsed = parse_bytes(bad.text);
    EXPECT_FALSE(parsed.value) << bad.text;
    EXPECT_NE(parsed.reason.find(bad.fragment), std::string::npos) << parsed.reason;
  }
}

TEST(ParseDuration, EveryUnit) {
  EXPECT_EQ(parse_duration("7 ns").value, Nanoseconds{7});
  EXPECT_EQ(parse_duration("20 us").value, Nanoseconds{20000});
  EXPECT_EQ(parse_duration("0.5 ms").value, Nanoseconds{500000});
  EXPECT_EQ(parse_duration("1.5 s").value, Nanoseconds{1500000000});
  EXPECT_EQ(parse_duration("10 min").value, Nanoseconds{600000000000});
  EXPECT_EQ(parse_duration("2 h").value, Nanoseconds{7200000000000});
  EXPECT_NE(parse_duration("10").reason.find("needs a unit: ns, us, ms, s, min, h"),
            std::string::npos);
  EXPECT_FALSE(parse_duration("10 m").value);
  EXPECT_FALSE(parse_duration("300000 h 5").value);
}

TEST(ParseRates, BytesAndFlops) {
  EXPECT_EQ(parse_bytes_per_second("50 GB/s").value, BytesPerSecond{50e9});
  EXPECT_EQ(parse_bytes_per_second("12.5 GiB/s").value, BytesPerSecond{12.5 * 1073741824.0});
  EXPECT_EQ(parse_flops_per_second("245 GFLOP/s").value, FlopsPerSecond{245e9});
  EXPECT_EQ(parse_flops_per_second("0.8 PFLOP/s").value, FlopsPerSecond{0.8e15});
  EXPECT_FALSE(parse_bytes_per_second("50 GB").value);
  EXPECT_FALSE(parse_flops_per_second("245 GFLOPS").value);
  EXPECT_FALSE(parse_flops_per_second("1e308 PFLOP/s").value);
}

TEST(ParsePercent, IsTheNearestFraction) {
  EXPECT_EQ(parse_percent("2 %").value, 0.02);
  EXPECT_EQ(parse_percent("3%").value, 0.03);
  EXPECT_EQ(parse_percent("0.5 %").value, 0.005);
  EXPECT_NE(parse_percent("0.02").reason.find("needs a unit: %"), std::string::npos);
}

}  // namespace
}  // namespace fsdp
