#include "bench/backend/mpi/prepared_step.hpp"

#include <sched.h>

#include <cstdio>
#include <utility>

#include "bench/backend/mpi/compute_stream.hpp"
#include "bench/backend/mpi/side_streams.hpp"
#include "bench/backend/mpi/verifier.hpp"
#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

constexpr Nanoseconds leave_limit{5'000'000'000};
constexpr int stream_end = -1;

OpId end_of(const Schedule& schedule) {
  OpId end{stream_end};
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (std::holds_alternative<StepEnd>(schedule.ops[i].work)) {
      end = OpId{static_cast<std::int32_t>(i)};
    }
  }
  expects(end.valid(), "a schedule has a StepEnd");
  return end;
}

}  // namespace

/// All that the communication thread touches, in one place that can outlive the step if that
/// thread should ever hang inside MPI.
struct MpiStep::Core {
  Core(const Schedule& schedule, const StepContext& step_context,
       const std::optional<FaultInjection>& fault)
      : context(step_context),
        arenas(schedule),
        gemms(*context.gemm_engine),
        program(
            bind(schedule, arenas, gemms,
                 {.rank = context.communicator->rank(), .ranks = context.communicator->size()})),
        end(end_of(schedule)),
        verifier(program, arenas, fault ? fault_target(schedule, *fault, program.place) : OpId{}),
        verified_timeline(timeline_for(schedule)),
        state(schedule.ops.size()),
        side_streams({.program = &program,
                      .state = &state,
                      .communicator = context.communicator.get(),
                      .gemms = &gemms,
                      .policy = context.policy,
                      .timeout = context.timeout}),
        compute_stream({.program = &program,
                        .state = &state,
                        .gemms = &gemms,
                        .policy = context.policy,
                        .timeout = context.timeout}) {
    gemms.allocate();
    fill_shards(program.schedule, arenas, program.place);
  }

  void communicate() {
    while (state.attend()) {
      try {
        side_streams.run_step();
      } catch (...) {
        state.fail(std::current_exception());
      }
      state.leave();
    }
  }

  StepContext context;
  Arenas arenas;
  Gemms gemms;
  StepProgram program;
  OpId end;
  Verifier verifier;
  Timeline verified_timeline;
  StepState state;
  SideStreams side_streams;
  ComputeStream compute_stream;
};

MpiStep::MpiStep(const Schedule& schedule, const StepContext& context,
                 const std::optional<FaultInjection>& fault)
    : core_(std::make_unique<Core>(schedule, context, fault)),
      communication_thread_([core = core_.get()] { core->communicate(); }) {}

MpiStep::~MpiStep() {
  if (!communication_thread_.joinable()) {
    return;
  }
  core_->state.quit();
  communication_thread_.join();
  if (core_->side_streams.collective_abandoned()) {
    core_->arenas.abandon();
  }
}

void MpiStep::run(Timeline& timeline) {
  expects(timeline.spans.size() == core_->program.ops.size(),
          "the timeline was made by timeline_for() of this schedule");
  run_step(timeline, nullptr);
}

std::optional<DataMismatch> MpiStep::run_verified() {
  expects(core_->program.place.ranks <= kernels::payload_max_ranks,
          "verification sums exactly over at most 256 ranks");
  core_->verifier.begin();
  run_step(core_->verified_timeline, &core_->verifier);
  return core_->verifier.first_mismatch();
}

void MpiStep::run_step(Timeline& timeline, StepObserver* observer) {
  if (broken_) {
    throw EnvironmentError("this step failed before and cannot run again: end the job");
  }
  StepState& state = core_->state;
  try {
    state.timeline = &timeline;
    state.observer = observer;
    state.summon();
    core_->compute_stream.await_attendance();
    state.start_ns = now_ns();
    state.begin();
    core_->compute_stream.run_step();
    core_->compute_stream.await_side_streams();
    if (state.failed()) {
      std::rethrow_exception(state.failure());
    }
  } catch (...) {
    stop_after_failure();
    throw;
  }
  timeline.step = Nanoseconds{timeline.spans[core_->end.index()].end_ns};
  peak_live_ = Bytes{std::max(peak_live_.value, state.peak_live_bytes())};
}

/// Leaves the communication thread parked, or, if it hangs inside MPI, to itself with all it
/// touches.
void MpiStep::stop_after_failure() {
  broken_ = true;
  core_->state.cancel();
  const std::int64_t deadline = now_ns() + leave_limit.value;
  while (!core_->state.left() && now_ns() < deadline) {
    sched_yield();
  }
  if (!core_->state.left()) {
    std::fprintf(stderr, "fsdp-tune: the communication thread hangs inside MPI; leaving it\n");
    communication_thread_.detach();
    static_cast<void>(core_.release());
  }
}

Allocation MpiStep::allocation() const {
  return {.pools = core_->arenas.pool_bytes(), .peak_live = peak_live_};
}

}  // namespace fsdp::mpi
