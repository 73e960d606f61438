#include "bench/backend/mpi/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/small_plans.hpp"

namespace fsdp::mpi {
namespace {

const Capabilities f32_and_bf16{.backend = "mpi",
                                .measures = true,
                                .gather_dtypes = {DType::f32, DType::bf16},
                                .reduce_dtypes = {DType::f32, DType::bf16},
                                .replicate_groups = false,
                                .compute = "none"};

Schedule a_schedule() { return test::schedule_of(test::small_plans().front(), 2); }

template <class Kind>
Kind& first(Schedule& schedule) {
  for (Op& op : schedule.ops) {
    if (auto* work = std::get_if<Kind>(&op.work)) {
      return *work;
    }
  }
  throw std::logic_error("no such work");
}

std::string refusal(const Schedule& schedule) {
  try {
    refuse_unsupported(schedule, f32_and_bf16, schedule.plan.mesh.world());
    return "";
  } catch (const Unsupported& error) {
    return error.what();
  }
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' speaks of " << part;
}

TEST(RefuseUnsupported, TakesWhatItCanRun) { EXPECT_EQ(refusal(a_schedule()), ""); }

TEST(RefuseUnsupported, CountsBeyondOneMpiCall) {
  Schedule schedule = a_schedule();
  first<AllGather>(schedule).send = std::int64_t{1} << 31;
  expect_in("2147483648 elements", refusal(schedule));
  schedule = a_schedule();
  first<ReduceScatter>(schedule).recv = std::int64_t{1} << 31;
  expect_in("2147483648 elements", refusal(schedule));
}

TEST(RefuseUnsupported, DtypesNobodyDoes) {
  Schedule schedule = a_schedule();
  first<ReduceScatter>(schedule).dtype = DType::f16;
  expect_in("f16", refusal(schedule));
  schedule = a_schedule();
  first<Compute>(schedule).dtype = DType::u8;
  expect_in("u8", refusal(schedule));
  schedule = a_schedule();
  schedule.buffers.front().dtype = DType::i64;
  expect_in("i64", refusal(schedule));
}

TEST(RefuseUnsupported, WorkOnAnotherThreadsStream) {
  Schedule schedule = a_schedule();
  for (Op& op : schedule.ops) {
    op.stream = Stream::compute;
  }
  expect_in("communication thread", refusal(schedule));
  schedule = a_schedule();
  for (Op& op : schedule.ops) {
    if (std::holds_alternative<Compute>(op.work)) {
      op.stream = Stream::all_reduce;
    }
  }
  expect_in("compute stream only", refusal(schedule));
}

TEST(RefuseUnsupported, EveryPlanItHasNoCodeForWithTheUnitAndAWayOut) {
  for (const test::SmallPlan& plan : test::wide_plans()) {
    SCOPED_TRACE(plan.name);
    const std::string text = refusal(test::schedule_of(plan, 4));
    expect_in("the mpi backend", text);
    expect_in(" of ", text);
  }
}

TEST(RefuseUnsupported, WorkItHasNoCodeForPointsToTheSimulator) {
  for (const test::SmallPlan& plan : test::wide_plans()) {
    if (plan.name == "submesh" || plan.name == "offload" || plan.name == "fsdp1") {
      expect_in("Use the sim backend", refusal(test::schedule_of(plan, 4)));
    }
  }
}

TEST(RefuseUnsupported, CollectivesOfReplicateGroups) {
  Schedule schedule = a_schedule();
  first<AllGather>(schedule).group.kind = GroupKind::replicate;
  expect_in("replicate", refusal(schedule));
}

}  // namespace
}  // namespace fsdp::mpi
