#include "bench/backend/mpi/doorbell.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {
namespace {

constexpr Nanoseconds long_time{20'000'000'000};

TEST(Doorbell, ARingSinceTheTicketEndsTheNapAtOnce) {
  Doorbell bell;
  const std::uint32_t ticket = bell.ticket();
  bell.ring();
  const std::int64_t begin_ns = now_ns();
  bell.nap(ticket, long_time);
  EXPECT_LT(now_ns() - begin_ns, long_time.value / 4);
}

TEST(Doorbell, ANapEndsAtItsLimit) {
  Doorbell bell;
  const std::int64_t begin_ns = now_ns();
  bell.nap(bell.ticket(), Nanoseconds{2'000'000});
  EXPECT_GE(now_ns() - begin_ns, 1'900'000);
  EXPECT_LT(now_ns() - begin_ns, long_time.value / 4);
}

TEST(Doorbell, NoRingIsLostBetweenTwoThreads) {
  constexpr int rounds = 2000;
  Doorbell there;
  Doorbell back;
  std::atomic<int> ball{0};  // odd: the other side's turn
  const auto play = [&](int mine, Doorbell& listen, Doorbell& ring) {
    for (int round = mine; round < rounds; round += 2) {
      while (true) {
        const std::uint32_t ticket = listen.ticket();
        if (ball.load() == round) {
          break;
        }
        listen.nap(ticket, long_time);
      }
      ball.store(round + 1);
      ring.ring();
    }
  };
  const std::int64_t begin_ns = now_ns();
  std::thread other([&] { play(1, there, back); });
  play(0, back, there);
  other.join();
  EXPECT_EQ(ball.load(), rounds);
  EXPECT_LT(now_ns() - begin_ns, long_time.value) << "a lost ring costs a whole nap";
}

}  // namespace
}  // namespace fsdp::mpi
