#include "core/config/read_wrap.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "bad_config.hpp"

namespace fsdp {
namespace {

template <class Rule>
Rule rule(const std::string& text) {
  return std::get<Rule>(
      load_run_config_text(tiny_model + "policy: {wrap: " + text + "}\n", "run.yaml").policy.wrap);
}

TEST(ReadWrap, RulesWithoutArguments) {
  EXPECT_NO_THROW(rule<WrapNone>("{by: none}"));
  EXPECT_NO_THROW(rule<WrapBlock>("{by: block}"));
  EXPECT_NO_THROW(rule<WrapSubBlock>("{by: sub_block}"));
  EXPECT_NO_THROW(rule<WrapTitan>("{by: titan}"));
  EXPECT_NO_THROW(rule<WrapAlways>("{by: always}"));
}

TEST(ReadWrap, RulesWithArguments) {
  EXPECT_EQ(rule<WrapEvery>("{every: 3}").blocks, 3);
  EXPECT_EQ(rule<WrapPartition>("{partition: [1, 2, 1]}").blocks, (std::vector<int>{1, 2, 1}));
  EXPECT_EQ(rule<WrapClass>("{class: [MLP, Block]}").classes,
            (std::vector<std::string>{"MLP", "Block"}));
  EXPECT_EQ(rule<WrapName>("{name: 'layers\\.\\d+'}").pattern, "layers\\.\\d+");
  EXPECT_EQ(rule<WrapTotalSize>("{total_size: {min_params: 5}}").min_params, 5);
  EXPECT_EQ(rule<WrapGroups>("{groups: [[a.0], [a.1, a.2]]}").groups,
            (std::vector<std::vector<std::string>>{{"a.0"}, {"a.1", "a.2"}}));
  EXPECT_TRUE(rule<WrapGroups>("{groups: []}").groups.empty());
}

TEST(ReadWrap, TheSizeRuleHasPyTorchsDefaults) {
  const auto defaults = rule<WrapSize>("{size: {}}");
  EXPECT_EQ(defaults.min_params, 100'000'000);
  EXPECT_EQ(defaults.force_leaf, std::vector<std::string>{"MultiheadAttention"});
  EXPECT_EQ(defaults.exclude, (std::vector<std::string>{"ModuleList", "ModuleDict"}));
  const auto own = rule<WrapSize>("{size: {min_params: 1e6, force_leaf: [A], exclude: [B, C]}}");
  EXPECT_EQ(own.min_params, 1'000'000);
  EXPECT_EQ(own.force_leaf, std::vector<std::string>{"A"});
  EXPECT_EQ(own.exclude, (std::vector<std::string>{"B", "C"}));
  EXPECT_TRUE(rule<WrapSize>("{size: {exclude: []}}").exclude.empty());
}

TEST(ReadWrap, Refusals) {
  expect_all_refused({
      {"policy: {wrap: block}\n", 1, 16, "policy.wrap", "must be a mapping, is 'block'",
       "{by: block}"},
      {"policy: {wrap: {}}\n", 1, 16, "policy.wrap", "must hold exactly one", ""},
      {"policy: {wrap: {by: block, every: 2}}\n", 1, 16, "policy.wrap",
       "must hold exactly one of by, every, partition, class, name, size, total_size, groups; "
       "holds 2",
       ""},
      {"policy: {wrap: {by: blocks}}\n", 1, 21, "policy.wrap.by", "'blocks' is not one of",
       "did you mean 'block'?"},
      {"policy: {wrap: {size: {min: 1}}}\n", 1, 24, "policy.wrap.size.min", "unknown key",
       "min_params"},
      {"policy: {wrap: {size: {min_params: 1.5}}}\n", 1, 36, "policy.wrap.size.min_params",
       "must be a whole number of elements", ""},
      {"policy: {wrap: {size: {min_params: -1}}}\n", 1, 36, "policy.wrap.size.min_params",
       "must be a whole number of elements", ""},
      {"policy: {wrap: {every: 0}}\n", 1, 24, "policy.wrap.every", "must be between 1 and 4096",
       ""},
      {"policy: {wrap: {partition: [1, 0]}}\n", 1, 32, "policy.wrap.partition[1]",
       "must be between 1 and 4096", ""},
      {"policy: {wrap: {class: [A, A]}}\n", 1, 28, "policy.wrap.class[1]",
       "the class 'A' is listed twice", ""},
      {"policy: {wrap: {groups: [[a], [b, a]]}}\n", 1, 31, "policy.wrap.groups[1]",
       "the module 'a' is in two groups", ""},
      {"policy: {wrap: {groups: [a]}}\n", 1, 26, "policy.wrap.groups[0]", "must be a list",
       "write [a"},
  });
}

}  // namespace
}  // namespace fsdp
