#include "bench/backend/mpi/step_state.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <stdexcept>
#include <thread>

namespace fsdp::mpi {
namespace {

TEST(StepState, PeakIsFoldedInIssueOrderNotInTheOrderOfRecording) {
  StepState state(4);
  state.summon();
  state.record_live(OpId{3}, -50);
  state.record_live(OpId{2}, 30);
  state.record_live(OpId{0}, 50);
  state.record_live(OpId{1}, -20);
  EXPECT_EQ(state.peak_live_bytes(), 60);
  state.summon();
  EXPECT_EQ(state.peak_live_bytes(), 0) << "a new step starts with nothing alive";
}

TEST(StepState, FlagsOfOneStepSayNothingAboutTheNext) {
  Timeline timeline;
  timeline.spans.resize(2);
  StepState state(2);
  std::thread communication([&] {
    while (state.attend()) {
      state.finish(OpId{1}, 20, 30);
      state.leave();
    }
  });
  for (int step = 0; step < 100; ++step) {
    state.timeline = &timeline;
    state.start_ns = 10;
    state.summon();
    EXPECT_FALSE(state.done(OpId{0}));
    EXPECT_FALSE(state.done(OpId{1}));
    while (!state.attended()) {
      sched_yield();
    }
    state.begin();
    state.finish(OpId{0}, 10, 15);
    while (!state.left()) {
      sched_yield();
    }
    EXPECT_TRUE(state.done(OpId{0}));
    EXPECT_TRUE(state.done(OpId{1}));
    EXPECT_EQ(timeline.spans[1].start_ns, 10);
    EXPECT_EQ(timeline.spans[1].end_ns, 20);
  }
  state.quit();
  communication.join();
  EXPECT_EQ(state.finished(), 200U);
}

TEST(StepState, AFailureReachesTheComputeThread) {
  StepState state(1);
  EXPECT_FALSE(state.failed());
  state.fail(std::make_exception_ptr(std::runtime_error("gone")));
  ASSERT_TRUE(state.failed());
  EXPECT_THROW(std::rethrow_exception(state.failure()), std::runtime_error);
}

}  // namespace
}  // namespace fsdp::mpi
