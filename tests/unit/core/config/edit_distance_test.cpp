#include "core/config/edit_distance.hpp"

#include <gtest/gtest.h>

namespace fsdp {
namespace {

TEST(EditDistance, CountsSingleEdits) {
  EXPECT_EQ(edit_distance("prefetch", "prefetch"), 0U);
  EXPECT_EQ(edit_distance("prefech", "prefetch"), 1U);
  EXPECT_EQ(edit_distance("prefetchh", "prefetch"), 1U);
  EXPECT_EQ(edit_distance("prefotch", "prefetch"), 1U);
  EXPECT_EQ(edit_distance("perfetch", "prefetch"), 1U) << "a swap of neighbours is one edit";
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Suggest, NearestWordOrAllOfThem) {
  const std::vector<std::string> words{"forward", "backward"};
  EXPECT_EQ(suggest("foward", words), "did you mean 'forward'?");
  EXPECT_EQ(suggest("bakcward", words), "did you mean 'backward'?");
  EXPECT_EQ(suggest("colour", words), "known here: forward, backward");
  EXPECT_EQ(suggest("x", {}), "");
  EXPECT_EQ(suggest(std::string(100000, 'x'), words), "known here: forward, backward");
}

}  // namespace
}  // namespace fsdp
