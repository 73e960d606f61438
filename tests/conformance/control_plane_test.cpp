// What ranks agree on, on whatever backend is linked; alone it must hold as well.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "tests/conformance/backend_under_test.hpp"

namespace fsdp::test {
namespace {

TEST(ControlPlane, BroadcastBringsRankZerosText) {
  ControlPlane& control = backend_under_test().control();
  for (const std::size_t size : {0U, 1U, 100'000U}) {
    const std::string text(size, static_cast<char>('a' + control.rank()));
    EXPECT_EQ(control.broadcast(text, "broadcast test"), std::string(size, 'a'));
  }
}

TEST(ControlPlane, AllGatherBringsEveryText) {
  ControlPlane& control = backend_under_test().control();
  const auto text_of = [](int rank) {
    return rank == 1 ? std::string() : "rank " + std::string(static_cast<std::size_t>(rank), '\0');
  };
  const auto texts = control.all_gather(text_of(control.rank()), "gather test");
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(control.size()));
  for (int rank = 0; rank < control.size(); ++rank) {
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

TEST(ControlPlane, MaxAndMinAreElementWise) {
  ControlPlane& control = backend_under_test().control();
  const double rank = control.rank();
  const double last = control.size() - 1;
  std::array most{rank, -rank, std::numeric_limits<double>::infinity()};
  std::array least{rank, -rank, 7.5};
  control.max(most, "max test");
  control.min(least, "min test");
  EXPECT_EQ(most, (std::array{last, -0.0, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(least, (std::array{0.0, -last, 7.5}));
  control.max({}, "nothing to compare");
}

TEST(ControlPlane, ManyBarriersInARow) {
  ControlPlane& control = backend_under_test().control();
  for (int i = 0; i < 200; ++i) {
    control.barrier("barrier test");
  }
}

}  // namespace
}  // namespace fsdp::test
