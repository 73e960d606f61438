#include "core/schedule/memory.hpp"

#include <gtest/gtest.h>

#include "tests/support/schedules.hpp"

namespace fsdp {
namespace {

using test::mixed_precision;
using test::schedule_of;
using test::small_llama;

constexpr std::int64_t block = 43'136;  // elements; every dimension divides 8
constexpr std::int64_t root = 12'352;

TEST(MemoryByPhase, FollowsTheRecordedTraceOfLlamaBlock) {
  const auto peaks = memory_by_phase(schedule_of(small_llama(3), mixed_precision(), 8));
  EXPECT_EQ(peaks.at(Phase::forward).total.value, 2 * (3 * block + root));
  EXPECT_EQ(peaks.at(Phase::forward).at, "copy_out model.layers.1");
  EXPECT_EQ(peaks.at(Phase::backward).total.value, 468'480);
  EXPECT_EQ(peaks.at(Phase::backward).at, "backward model.layers.1");
}

TEST(MemoryByPhase, EqualUnitsHoldKnownMultiplesOfOne) {
  const auto peak = [](const FsdpPolicy& policy, Phase phase) {
    return memory_by_phase(schedule_of(small_llama(6), policy, 8)).at(phase).total.value;
  };
  // Forward: bf16 parameters of the root stay. Two units' parameters and a gather; an explicit list
  // of one gathers no earlier than the kept output is let go, one of two does.
  const std::int64_t kept = 2 * root;
  FsdpPolicy policy = mixed_precision();
  EXPECT_EQ(peak(policy, Phase::forward), 6 * block + kept);
  policy.forward_prefetch = 1;
  EXPECT_EQ(peak(policy, Phase::forward), 6 * block + kept);
  policy.forward_prefetch = 2;
  EXPECT_EQ(peak(policy, Phase::forward), 8 * block + kept);
  // Backward: the gradients of norm (64) and head (96 x 64) stand as well.
  const std::int64_t stands = kept + 2 * (64 + 96 * 64);
  policy = mixed_precision();
  EXPECT_EQ(peak(policy, Phase::backward), 10 * block + stands);
  policy.backward_prefetch = 2;
  EXPECT_EQ(peak(policy, Phase::backward), 12 * block + stands);
  policy.backward_prefetch = 1;
  policy.reduce_scatter_buffers = 2;
  EXPECT_EQ(peak(policy, Phase::backward), 14 * block + stands);
  policy.reduce_dtype = DType::bf16;
  EXPECT_EQ(peak(policy, Phase::backward), 10 * block + stands);
  policy.reduce_scatter_buffers = 1;
  EXPECT_EQ(peak(policy, Phase::backward), 8 * block + stands);
}

TEST(LayoutArenas, NeverOverlapsLiveBuffers) {
  for (const int prefetch : {0, 3}) {
    FsdpPolicy policy = mixed_precision();
    policy.forward_prefetch = prefetch;
    const Schedule schedule = schedule_of(small_llama(5), policy, 7);
    const ArenaLayout layout = layout_arenas(schedule);
    std::vector<BufferId> live;
    for (const Op& op : schedule.ops) {
      if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
        const auto begin = layout.offsets[allocate->buffer.index()].value;
        const auto end = begin + schedule[allocate->buffer].bytes().value;
        EXPECT_LE(
            end,
            layout.pool_bytes[static_cast<std::size_t>(schedule[allocate->buffer].pool)].value);
        EXPECT_EQ(begin % 64, 0);
        for (const BufferId other : live) {
          if (schedule[other].pool == schedule[allocate->buffer].pool) {
            const auto other_begin = layout.offsets[other.index()].value;
            EXPECT_TRUE(end <= other_begin || other_begin + schedule[other].bytes().value <= begin);
          }
        }
        live.push_back(allocate->buffer);
      } else if (const auto* release = std::get_if<Free>(&op.work)) {
        std::erase(live, release->buffer);
      }
    }
    EXPECT_TRUE(live.empty());
  }
}

TEST(MemoryReport, CountsEveryByte) {
  const Schedule schedule = schedule_of(small_llama(3), mixed_precision(), 8);
  const MemoryReport report = memory_report(schedule);
  const std::int64_t shards = (3 * block + root) / 8;
  EXPECT_EQ(report.resident.value, shards * 4 * 2);   // master and gradient, f32
  EXPECT_EQ(report.optimizer.value, shards * 4 * 2);  // two moments
  EXPECT_GE(report.arenas.value, report.resident.value + report.transient_live.value);
  EXPECT_EQ(report.total().value, report.arenas.value + report.optimizer.value);
}

TEST(MemoryReport, KeepingParametersCostsMemory) {
  FsdpPolicy keep = mixed_precision();
  keep.reshard_after_forward = Reshard::keep();
  EXPECT_GT(memory_report(schedule_of(small_llama(6), keep, 4)).transient_live,
            memory_report(schedule_of(small_llama(6), mixed_precision(), 4)).transient_live);
}

}  // namespace
}  // namespace fsdp
