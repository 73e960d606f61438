#include "core/config/yaml_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "core/config/yaml_reader.hpp"
#include "core/units/parse.hpp"

namespace fsdp {
namespace {

TEST(YamlText, QuantitiesUseTheLargestUnitThatDividesThem) {
  EXPECT_EQ(yaml_bytes(Bytes{std::int64_t{80} << 30}), "80 GiB");
  EXPECT_EQ(yaml_bytes(Bytes{1537}), "1537 B");
  EXPECT_EQ(yaml_bytes(Bytes{0}), "0 B");
  EXPECT_EQ(yaml_duration(Nanoseconds{600'000'000'000}), "10 min");
  EXPECT_EQ(yaml_duration(Nanoseconds{1'500'000'000}), "1500 ms");
  EXPECT_EQ(yaml_duration(Nanoseconds{7}), "7 ns");
  EXPECT_EQ(yaml_flops_per_second(FlopsPerSecond{600e12}), "600 TFLOP/s");
  EXPECT_EQ(yaml_percent(0.02), "2 %");
  EXPECT_EQ(yaml_percent(0.07), "7 %");
  EXPECT_EQ(yaml_percent(0.005), "0.5 %");
}

TEST(YamlText, QuantitiesReadBackExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto count = static_cast<std::int64_t>(random() >> (11 + random() % 50));
    EXPECT_EQ(parse_bytes(yaml_bytes(Bytes{count})).value, Bytes{count});
    EXPECT_EQ(parse_duration(yaml_duration(Nanoseconds{count})).value, Nanoseconds{count});
    const FlopsPerSecond rate{static_cast<double>(count) * 1.37};
    EXPECT_EQ(parse_flops_per_second(yaml_flops_per_second(rate)).value, rate);
    const double fraction = static_cast<double>(random() % 100'000) / 1000.0 / 100.0;
    EXPECT_EQ(parse_percent(yaml_percent(fraction)).value, fraction);
  }
}

TEST(YamlText, StringsReadBackExactly) {
  for (const std::string text : {"results/runs",
                                 "model.norm+lm_head",
                                 "true",
                                 "Yes",
                                 "null",
                                 "~",
                                 "12",
                                 "1e3",
                                 "a: b",
                                 "#x",
                                 "it's",
                                 "say \"no\"",
                                 "back\\slash",
                                 "two\nlines",
                                 "tab\t",
                                 " blank ",
                                 "-",
                                 "- x",
                                 "{a}",
                                 "caf\xc3\xa9",
                                 "*a",
                                 "&a",
                                 "!x",
                                 "%",
                                 "@",
                                 "`",
                                 "a,b",
                                 "[",
                                 "."}) {
    const YamlReader root = YamlReader::parse(fmt::format("key: {}", yaml_string(text)), "f");
    EXPECT_EQ(root.at("key").text(), text) << yaml_string(text);
    const YamlReader flow = YamlReader::parse(fmt::format("[{}, x]", yaml_string(text)), "f");
    EXPECT_EQ(flow.items()[0].text(), text) << yaml_string(text);
  }
}

}  // namespace
}  // namespace fsdp
