// One suite for every backend: what any executor owes to any schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/schedule/memory.hpp"
#include "core/schedule/verify.hpp"
#include "tests/conformance/backend_under_test.hpp"
#include "tests/support/small_plans.hpp"

namespace fsdp::test {
namespace {

std::vector<Schedule> schedules_of(const SmallPlan& plan) {
  std::vector<Schedule> schedules;
  for (const int ranks : backend_under_test().worlds()) {
    schedules.push_back(schedule_of(plan, ranks));
  }
  return schedules;
}

SmallPlan plan_named(const std::string& name) {
  for (SmallPlan& plan : small_plans()) {
    if (plan.name == name) {
      return std::move(plan);
    }
  }
  throw std::logic_error("no small plan " + name);
}

std::string where(const Schedule& schedule, std::size_t op) {
  const Op& what = schedule.ops[op];
  return "op #" + std::to_string(op) + " " + std::string(name_of(what)) + " on " +
         std::string(to_text(what.stream, schedule.plan.policy.profile)) + ", world " +
         std::to_string(schedule.plan.mesh.shard);
}

/// Edges, stream order and communicator order, as spans.
void expect_ordered(const Schedule& schedule, const Timeline& timeline) {
  std::array<std::int64_t, stream_count> stream_end{};
  std::int64_t communicator_end = 0;
  ASSERT_EQ(timeline.spans.size(), schedule.ops.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const OpSpan& span = timeline.spans[i];
    EXPECT_GE(span.start_ns, 0) << where(schedule, i);
    EXPECT_GE(span.end_ns, span.start_ns) << where(schedule, i);
    for (const OpId before : op.after) {
      EXPECT_GE(span.start_ns, timeline.spans[before.index()].end_ns)
          << where(schedule, i) << " after " << where(schedule, before.index());
    }
    std::int64_t& previous = stream_end[static_cast<std::size_t>(op.stream)];
    EXPECT_GE(span.start_ns, previous) << where(schedule, i);
    previous = span.end_ns;
    if (is_collective(op)) {
      EXPECT_GE(span.start_ns, communicator_end) << where(schedule, i);
      communicator_end = span.end_ns;
    }
    if (std::holds_alternative<StepEnd>(op.work)) {
      EXPECT_EQ(timeline.step.value, span.end_ns);
    }
  }
  EXPECT_GT(timeline.step.value, 0);
}

/// The ops of one kind, in issue order.
std::vector<OpId> ops_named(const Schedule& schedule, const std::string& name) {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (name_of(schedule.ops[i]) == name) {
      found.push_back({static_cast<std::int32_t>(i)});
    }
  }
  return found;
}

/// The sentence of the refusal, or nothing when the schedule was taken.
std::string refusal(Executor& executor, const Schedule& schedule) {
  try {
    executor.prepare(schedule);
    return "";
  } catch (const Unsupported& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
    return error.what();
  }
}

void expect_sentence(const std::string& text) {
  EXPECT_GT(std::count(text.begin(), text.end(), ' '), 4) << "'" << text << "' says why";
}

class EverySmallPlan : public ::testing::TestWithParam<SmallPlan> {};

TEST_P(EverySmallPlan, IsAValidSchedule) {
  for (const Schedule& schedule : schedules_of(GetParam())) {
    for (const Violation& violation : verify(schedule)) {
      ADD_FAILURE() << where(schedule, violation.op.index()) << ": " << violation.what;
    }
  }
}

TEST_P(EverySmallPlan, SpansKeepEveryOrder) {
  const auto executor = backend_under_test().executor(std::nullopt);
  for (const Schedule& schedule : schedules_of(GetParam())) {
    const auto step = executor->prepare(schedule);
    Timeline timeline = timeline_for(schedule);
    for (int repetition = 0; repetition < 3; ++repetition) {
      step->run(timeline);
      expect_ordered(schedule, timeline);
    }
  }
}

TEST_P(EverySmallPlan, MemoryIsWhatTheScheduleSays) {
  const auto executor = backend_under_test().executor(std::nullopt);
  for (const Schedule& schedule : schedules_of(GetParam())) {
    const auto step = executor->prepare(schedule);
    Timeline timeline = timeline_for(schedule);
    step->run(timeline);
    EXPECT_EQ(step->allocation().pools, layout_arenas(schedule).pool_bytes);
    EXPECT_EQ(step->allocation().peak_live, memory_report(schedule).transient_live);
  }
}

TEST_P(EverySmallPlan, DataIsRightAndStaysRight) {
  const auto executor = backend_under_test().executor(std::nullopt);
  for (const Schedule& schedule : schedules_of(GetParam())) {
    const auto step = executor->prepare(schedule);
    Timeline timeline = timeline_for(schedule);
    for (int repetition = 0; repetition < 2; ++repetition) {
      const auto mismatch = step->run_verified();
      EXPECT_FALSE(mismatch.has_value()) << to_text(mismatch.value_or(DataMismatch{}));
      step->run(timeline);
      expect_ordered(schedule, timeline);
    }
  }
}

TEST_P(EverySmallPlan, AFlippedByteIsFoundOnItsRankOnly) {
  BackendUnderTest& backend = backend_under_test();
  if (!backend.executor(std::nullopt)->capabilities().measures) {
    GTEST_SKIP() << "this backend moves no data";
  }
  const int ranks = backend.control().size();
  const Schedule schedule = schedule_of(GetParam(), ranks);
  for (const std::string operation : {"all_gather", "reduce_scatter"}) {
    const std::vector<OpId> ops = ops_named(schedule, operation);
    if (ops.empty()) {
      continue;  // a group of one copies locally
    }
    const UnitId unit = schedule[ops[ops.size() / 2]].unit;
    const OpId first =
        *std::find_if(ops.begin(), ops.end(), [&](OpId op) { return schedule[op].unit == unit; });
    for (int rank = 0; rank < ranks; ++rank) {
      const auto executor = backend.executor(
          FaultInjection{.rank = rank, .operation = operation, .unit = schedule.plan[unit].name});
      const auto step = executor->prepare(schedule);
      const auto mismatch = step->run_verified();
      ASSERT_EQ(mismatch.has_value(), rank == backend.control().rank()) << operation;
      if (mismatch) {
        EXPECT_EQ(mismatch->rank, rank);
        EXPECT_EQ(mismatch->op, first);
        EXPECT_EQ(mismatch->operation, operation);
        EXPECT_EQ(mismatch->unit, schedule.plan[unit].name);
        EXPECT_NE(mismatch->expected, mismatch->found);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, EverySmallPlan, ::testing::ValuesIn(small_plans()),
                         [](const auto& plan) { return plan.param.name; });

TEST(Conformance, ASpoiltScheduleShowsAsWrongData) {
  BackendUnderTest& backend = backend_under_test();
  const auto executor = backend.executor(std::nullopt);
  if (!executor->capabilities().measures) {
    GTEST_SKIP() << "this backend moves no data";
  }
  // One block is fed from the other block's shard: all sizes agree, only the contents are wrong.
  SmallPlan plan = plan_named("release_2_8");
  Schedule schedule = schedule_of(plan, backend.control().size());
  std::vector<Cast*> casts;
  for (Op& op : schedule.ops) {
    auto* cast = std::get_if<Cast>(&op.work);
    if (cast != nullptr && schedule[cast->from].kind == BufferKind::shard &&
        schedule.plan[op.unit].name != "root") {
      casts.push_back(cast);
    }
  }
  ASSERT_GE(casts.size(), 2U);
  casts[0]->from = casts[1]->from;
  const auto mismatch = executor->prepare(schedule)->run_verified();
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->operation, "all_gather");
}

TEST(Conformance, FaultsThatCannotHappenAreRefused) {
  BackendUnderTest& backend = backend_under_test();
  if (!backend.executor(std::nullopt)->capabilities().measures) {
    GTEST_SKIP() << "this backend moves no data";
  }
  const Schedule schedule = schedule_of(plan_named("release_2_8"), backend.control().size());
  for (const FaultInjection& fault :
       {FaultInjection{.rank = backend.control().size(), .operation = "all_gather", .unit = ""},
        FaultInjection{.rank = 0, .operation = "all_reduce", .unit = ""},
        FaultInjection{.rank = 0, .operation = "all_gather", .unit = "model.layers.99"}}) {
    EXPECT_THROW(backend.executor(fault)->prepare(schedule), UsageError);
  }
}

TEST(Conformance, ReplicateGroupsAreRefusedWithASentence) {
  const auto executor = backend_under_test().executor(std::nullopt);
  if (executor->capabilities().replicate_groups) {
    GTEST_SKIP() << "this backend has replicate groups";
  }
  Schedule schedule = schedule_of(plan_named("block"), backend_under_test().worlds().front());
  schedule.plan.mesh.replicate = 2;
  const std::string sentence = refusal(*executor, schedule);
  EXPECT_NE(sentence.find("replica"), std::string::npos) << sentence;
  expect_sentence(sentence);

  schedule.plan.mesh.replicate = 1;
  const auto shard = std::find_if(schedule.buffers.begin(), schedule.buffers.end(),
                                  [](const Buffer& b) { return b.pool == Pool::resident; });
  const BufferId buffer{static_cast<std::int32_t>(shard - schedule.buffers.begin())};
  schedule.ops.insert(schedule.ops.begin(), Op{.work = AllReduce{.group = {GroupKind::replicate, 2},
                                                                 .buffer = buffer,
                                                                 .numel = shard->numel,
                                                                 .dtype = shard->dtype,
                                                                 .op = ReduceOp::sum,
                                                                 .factor = 1},
                                               .phase = Phase::forward,
                                               .micro = 0,
                                               .unit = shard->unit,
                                               .stream = Stream::all_reduce,
                                               .after = {}});
  expect_sentence(refusal(*executor, schedule));
}

TEST(Conformance, AMeshOfAnotherSizeIsRefusedWithASentence) {
  BackendUnderTest& backend = backend_under_test();
  const auto executor = backend.executor(std::nullopt);
  const Schedule schedule = schedule_of(plan_named("block"), backend.control().size() + 1);
  const std::string sentence = refusal(*executor, schedule);
  if (executor->capabilities().measures) {
    EXPECT_NE(sentence.find("ranks"), std::string::npos) << sentence;
    expect_sentence(sentence);
  } else {
    EXPECT_EQ(sentence, "") << "a simulation has as many ranks as it is asked for";
  }
}

TEST(Conformance, DtypesOutsideTheCapabilitiesAreRefusedWithASentence) {
  const auto executor = backend_under_test().executor(std::nullopt);
  SmallPlan plan = plan_named("block");
  plan.policy.param_dtype = DType::f16;
  plan.policy.reduce_dtype = DType::f16;
  const std::string sentence =
      refusal(*executor, schedule_of(plan, backend_under_test().worlds().front()));
  const auto& known = executor->capabilities().gather_dtypes;
  if (std::find(known.begin(), known.end(), DType::f16) == known.end()) {
    EXPECT_NE(sentence.find("f16"), std::string::npos) << sentence;
    expect_sentence(sentence);
  } else {
    EXPECT_EQ(sentence, "");
  }
}

TEST(Conformance, CapabilitiesSayWhatTheyAre) {
  const auto executor = backend_under_test().executor(std::nullopt);
  const Capabilities& capabilities = executor->capabilities();
  EXPECT_FALSE(capabilities.backend.empty());
  EXPECT_FALSE(capabilities.compute.empty());
  EXPECT_FALSE(capabilities.gather_dtypes.empty());
  EXPECT_FALSE(capabilities.reduce_dtypes.empty());
}

}  // namespace
}  // namespace fsdp::test
