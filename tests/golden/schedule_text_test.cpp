// Whole schedules in their readable form. A change of any rule shows here as a diff; to accept it,
// run this program with FSDP_UPDATE_GOLDENS=1 and read the diff before committing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/schedule/text.hpp"
#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

struct Case {
  std::string name;
  FsdpPolicy policy;
  int ranks = 4;
};

std::vector<Case> cases() {
  const FsdpPolicy block = test::mixed_precision();
  std::vector<Case> out{{"block", block, 4}, {"block-w7", block, 7}, {"block-w1", block, 1}};
  FsdpPolicy policy = block;
  policy.wrap = WrapTitan{};
  out.push_back({"titan", policy});
  policy = block;
  policy.wrap = WrapEvery{2};
  policy.forward_prefetch = 2;
  policy.backward_prefetch = 2;
  out.push_back({"every-2-f2-b2", policy});
  policy = block;
  policy.reshard_after_forward = Reshard::keep();
  out.push_back({"keep", policy});
  policy = block;
  policy.reduce_scatter_buffers = 2;
  policy.reduce_dtype = DType::bf16;
  out.push_back({"bf16-reduce-two-buffers", policy});
  policy = block;
  policy.reshard_after_forward = {2};
  out.push_back({"reshard-2", policy});
  policy = block;
  policy.activation_checkpointing = Checkpointing::full;
  policy.cpu_offload = true;
  out.push_back({"checkpointed-offloaded", policy});
  policy = block;
  policy.profile = Profile::fsdp1;
  out.push_back({"fsdp1", policy});
  return out;
}

class ScheduleText : public testing::TestWithParam<Case> {};

TEST_P(ScheduleText, IsUnchanged) {
  const std::string path =
      std::string(FSDP_SOURCE_DIR) + "/tests/golden/schedules/" + GetParam().name + ".txt";
  const std::string text =
      to_text(test::schedule_of(test::small_llama(3), GetParam().policy, GetParam().ranks));
  if (std::getenv("FSDP_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << "missing " << path;
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str());
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleText, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace fsdp
