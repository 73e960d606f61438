#include "core/schedule/division.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace fsdp {
namespace {

TEST(Divisors, OfPyTorchsDefaultHooks) {
  for (const auto& [world, before, after] :
       std::vector<std::tuple<double, double, double>>{{1, 1, 1},
                                                       {2, 2, 1},
                                                       {3, 2, 1.5},
                                                       {4, 2, 2},
                                                       {6, 4, 1.5},
                                                       {8, 4, 2},
                                                       {12, 4, 3},
                                                       {16, 4, 4},
                                                       {24, 8, 3},
                                                       {32, 8, 4},
                                                       {64, 8, 8},
                                                       {128, 16, 8},
                                                       {256, 16, 16},
                                                       {512, 32, 16}}) {
    EXPECT_EQ(divisors(world).before, before) << world;
    EXPECT_EQ(divisors(world).after, after) << world;
  }
}

}  // namespace
}  // namespace fsdp
