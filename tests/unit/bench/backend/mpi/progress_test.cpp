#include "bench/backend/mpi/progress.hpp"

#include <gtest/gtest.h>

#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {
namespace {

TEST(ProgressPolicy, NapsLongerWhereThreadsOutnumberCores) {
  const ProgressPolicy scarce = progress_policy({.ranks = 2, .cores = 2});
  const ProgressPolicy plenty = progress_policy({.ranks = 2, .cores = 4});
  EXPECT_GT(scarce.nap, plenty.nap);
  EXPECT_LT(scarce.compute_yields, plenty.compute_yields);
}

TEST(StallClock, StartsAnewWheneverSomethingFinishes) {
  StallClock clock({5'000'000});
  clock.restart();
  const auto pass = [](std::int64_t time_ns) {
    const std::int64_t end_ns = now_ns() + time_ns;
    while (now_ns() < end_ns) {}
  };
  EXPECT_FALSE(clock.stalled(1));
  pass(6'000'000);
  EXPECT_FALSE(clock.stalled(2)) << "one more has finished since";
  pass(6'000'000);
  EXPECT_TRUE(clock.stalled(2));
  clock.restart();
  EXPECT_FALSE(clock.stalled(2));
}

}  // namespace
}  // namespace fsdp::mpi
