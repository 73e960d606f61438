// fsdp-allgather-ratio: is the replay's all-gather as fast as a bare MPI_Iallgather of the same
// size? Both run in this process, by turns, each summarised by its slowest rank. Exit code 1 when
// from 4 MiB on the replay is below 95 % of the bare loop. To be run with every rank bound to a
// core: the communication thread and the one that runs the bare loop then share it. Left to the
// scheduler, either may find its peer on its own core and lose half of its speed to luck.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <vector>

#include "bench/backend/mpi/backend.hpp"
#include "bench/backend/mpi/raw_collective.hpp"
#include "bench/measure/statistics.hpp"

namespace fsdp {
namespace {

constexpr Nanoseconds timeout{60'000'000'000};
constexpr std::int64_t mib = 1 << 20;
constexpr std::array<std::int64_t, 4> sizes_mib{1, 4, 16, 64};
constexpr std::int64_t judged_from_mib = 4;
constexpr double least_ratio = 0.95;
constexpr int warm_up = 5;
constexpr std::int64_t bytes_a_size = 4096 * mib;  ///< gathered each way, per size
constexpr int fewest_pairs = 31;
constexpr int most_pairs = 301;
constexpr int most_rounds = 4;

struct Pairs {
  std::vector<double> replay_ns;
  std::vector<double> raw_ns;
};

/// One unit of one parameter: copy-in, all-gather, end.
Schedule one_all_gather(Bytes gathered, int ranks) {
  const std::int64_t shard = gathered.value / element_bytes(DType::f32) / ranks;
  const UnitId unit{0};
  FsdpUnit only;
  only.name = "only";
  only.numel = only.padded_numel = shard * ranks;
  only.shard_numel = shard;
  only.param_dtype = DType::f32;
  only.parameters = {{.path = "weight",
                      .shape = {shard * ranks},
                      .dtype = DType::f32,
                      .trainable = true,
                      .numel = shard * ranks,
                      .shard_numel = shard,
                      .padded_numel = shard * ranks}};
  Schedule schedule;
  schedule.plan.mesh = {.replicate = 1, .shard = ranks};
  schedule.plan.units = {only};
  Buffer master;
  master.unit = unit;
  master.numel = shard;
  Buffer output = master;
  output.kind = BufferKind::all_gather_output;
  output.pool = Pool::all_gather_copy_in;
  output.numel = shard * ranks;
  schedule.buffers = {master, output};
  const auto add = [&](const Work& work, Stream stream, std::vector<OpId> after) {
    Op op;
    op.work = work;
    op.unit = unit;
    op.stream = stream;
    op.after = std::move(after);
    schedule.ops.push_back(std::move(op));
  };
  const BufferId from{0};
  const BufferId to{1};
  add(Allocate{to}, Stream::all_gather_copy_in, {});
  add(CopyIn{from, to}, Stream::all_gather_copy_in, {});
  add(AllGather{.group = {GroupKind::shard, ranks},
                .from = to,
                .to = to,
                .send = shard,
                .recv = shard * ranks,
                .dtype = DType::f32},
      Stream::all_gather, {OpId{1}});
  add(Free{to}, Stream::all_gather_copy_in, {OpId{2}});
  add(StepEnd{}, Stream::compute, {OpId{2}, OpId{3}});
  schedule.ops.back().unit = {};
  return schedule;
}

/// A round of pairs, with memory and a prepared step of its own, added to `result`.
void measure(mpi::Session& session, Executor& executor, std::int64_t size_mib, Pairs& result) {
  ControlPlane& control = session.control();
  const Schedule schedule = one_all_gather({size_mib * mib}, control.size());
  const auto step = executor.prepare(schedule);
  mpi::RawAllGather raw({size_mib * mib});
  Timeline timeline = timeline_for(schedule);
  const int pairs = static_cast<int>(
      std::clamp<std::int64_t>(bytes_a_size / (size_mib * mib), fewest_pairs, most_pairs));
  for (int i = -warm_up; i < pairs; ++i) {
    std::array<double, 2> slowest_ns{};
    for (const int turn : {i % 2 == 0 ? 0 : 1, i % 2 == 0 ? 1 : 0}) {
      control.barrier("one all-gather");
      if (turn == 0) {
        step->run(timeline);
        slowest_ns[0] = static_cast<double>(timeline.spans[2].end_ns - timeline.spans[2].start_ns);
      } else {
        slowest_ns[1] = static_cast<double>(raw.run().value);
      }
    }
    control.max(slowest_ns, "slowest rank");
    if (i >= 0) {
      result.replay_ns.push_back(slowest_ns[0]);
      result.raw_ns.push_back(slowest_ns[1]);
    }
  }
}

/// Decimal GB/s in the (n-1)/n convention.
double busbw(std::int64_t bytes, double time_ns, int ranks) {
  return static_cast<double>(bytes) / time_ns * (ranks - 1) / ranks;
}

/// Prints one row; true when the replay is as fast as asked.
bool judge(std::int64_t size_mib, const Pairs& pairs, ControlPlane& control) {
  std::vector<double> ratios;  // of speeds: raw time over replay time
  for (std::size_t i = 0; i < pairs.raw_ns.size(); ++i) {
    ratios.push_back(pairs.raw_ns[i] / pairs.replay_ns[i]);
  }
  const Summary ratio = summarise(ratios);
  if (control.rank() == 0) {
    std::fputs(fmt::format("{:>6} MiB  {:>8.3f}  {:>8.3f}  {:>6.3f}  {:>6.3f} .. {:<6.3f}  {:>4}\n",
                           size_mib, busbw(size_mib * mib, median(pairs.replay_ns), control.size()),
                           busbw(size_mib * mib, median(pairs.raw_ns), control.size()),
                           ratio.median, ratio.low.value(), ratio.high.value(), ratio.n)
                   .c_str(),
               stdout);
    std::fflush(stdout);
  }
  return size_mib < judged_from_mib || ratio.median >= least_ratio;
}

ExitCode compare_all(mpi::Session& session) {
  if (session.control().size() < 2) {
    throw UsageError(
        "an all-gather needs at least 2 ranks: mpiexec -bind-to core -n 2 fsdp-allgather-ratio");
  }
  if (session.control().rank() == 0) {
    std::fputs(
        "  gathered    replay       raw   ratio  of pairs, 95 %       n\n"
        "             GB/s bus  GB/s bus\n",
        stdout);
  }
  const auto executor = session.executor(std::nullopt);
  bool good = true;
  for (const std::int64_t size_mib : sizes_mib) {
    // A round that falls short gets more, pooled: on a busy machine the interval of one is wide.
    Pairs pairs;
    bool fast = false;
    for (int round = 0; round < most_rounds && !fast; ++round) {
      measure(session, *executor, size_mib, pairs);
      fast = judge(size_mib, pairs, session.control());
    }
    good = fast && good;
  }
  return good ? ExitCode::ok : ExitCode::fail;
}

}  // namespace
}  // namespace fsdp

int main() {
  try {
    fsdp::mpi::Session session({.timeout = fsdp::timeout});
    try {
      const fsdp::ExitCode code = fsdp::compare_all(session);
      session.finish(code);
      return static_cast<int>(code);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", session.control().rank(), error.what());
      session.abort(fsdp::ExitCode::environment);
    }
  } catch (const fsdp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
