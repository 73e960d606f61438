#include "core/schedule/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

Schedule good() { return test::schedule_of(test::small_llama(3), test::mixed_precision(), 4); }

template <class T>
Op& first(Schedule& schedule) {
  return *std::find_if(schedule.ops.begin(), schedule.ops.end(),
                       [](const Op& op) { return std::holds_alternative<T>(op.work); });
}

bool mentions(const std::vector<Violation>& violations, const std::string& part) {
  return std::any_of(violations.begin(), violations.end(),
                     [&](const Violation& v) { return v.what.find(part) != std::string::npos; });
}

TEST(Verify, AcceptsWhatTheBuilderMakes) { EXPECT_TRUE(verify(good()).empty()); }

TEST(Verify, SeesAMissingEdge) {
  // Every edge counts: without any one of them something may be read, freed or ended too early, or
  // another edge implies it. At least the gather's own edges must be missed.
  for (const bool gather : {true, false}) {
    Schedule schedule = good();
    Op& op = gather ? first<AllGather>(schedule) : first<CopyOut>(schedule);
    if (!gather) {  // the wait sits on the allocation before the copy-out
      for (Op& other : schedule.ops) {
        if (other.stream == Stream::compute) {
          other.after.clear();
        }
      }
    }
    op.after.clear();
    EXPECT_FALSE(verify(schedule).empty());
  }
}

TEST(Verify, SeesUseAfterFree) {
  Schedule schedule = good();
  const auto copy = std::find_if(schedule.ops.begin(), schedule.ops.end(), [](const Op& op) {
    return std::holds_alternative<CopyOut>(op.work);
  });
  const BufferId output = std::get<CopyOut>(copy->work).from;
  const auto release = std::find_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) {
    const auto* f = std::get_if<Free>(&op.work);
    return f != nullptr && f->buffer == output;
  });
  copy->after.clear();
  std::swap(copy->work, release->work);
  EXPECT_TRUE(mentions(verify(schedule), "freed"));
}

TEST(Verify, SeesADoubleFreeAndALeak) {
  Schedule schedule = good();
  std::vector<Op*> frees;
  for (Op& op : schedule.ops) {
    if (std::holds_alternative<Free>(op.work)) {
      frees.push_back(&op);
    }
  }
  frees.back()->work = frees.front()->work;
  const auto violations = verify(schedule);
  EXPECT_TRUE(mentions(violations, "never freed"));
  EXPECT_TRUE(mentions(violations, "without being alive"));
}

TEST(Verify, SeesForwardEdgesAndWrongSizes) {
  Schedule schedule = good();
  first<AllGather>(schedule).after = {{static_cast<std::int32_t>(schedule.ops.size() - 1)}};
  EXPECT_TRUE(mentions(verify(schedule), "not earlier"));

  schedule = good();
  std::get<AllGather>(first<AllGather>(schedule).work).send += 1;
  EXPECT_TRUE(mentions(verify(schedule), "sizes differ"));
}

TEST(Verify, SeesAStepThatEndsTooEarly) {
  Schedule schedule = good();
  schedule.ops.back().after.clear();
  EXPECT_TRUE(mentions(verify(schedule), "may still run when the step ends"));
  schedule.ops.pop_back();
  EXPECT_TRUE(mentions(verify(schedule), "not the end of the step"));
}

}  // namespace
}  // namespace fsdp
