#include "core/plan/path_patterns.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace fsdp {
namespace {

TEST(PathPatterns, ExactlyMatchesThePathAlone) {
  EXPECT_EQ(exactly("model.norm"), "model\\.norm");
  EXPECT_TRUE(std::regex_match("model.norm", std::regex(exactly("model.norm"))));
  EXPECT_FALSE(std::regex_match("modelxnorm", std::regex(exactly("model.norm"))));
  EXPECT_EQ(exactly(""), "");
}

TEST(PathPatterns, InAllLayersLeavesNumbersOpen) {
  EXPECT_EQ(in_all_layers("layers.13.attn.w2"), "layers\\.\\d+\\.attn\\.w2");
  const std::regex pattern(in_all_layers("layers.13.attn.w2"));
  EXPECT_TRUE(std::regex_match("layers.0.attn.w2", pattern));
  EXPECT_FALSE(std::regex_match("layers.0.attn.w3", pattern));
}

}  // namespace
}  // namespace fsdp
