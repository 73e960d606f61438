// Measures prepared steps: contents verified first, warmed up, then interleaved in random order
// until the criterion is met. Every rank takes every decision from the same reduced figures, so
// that no rank ever waits for a step that another one has decided not to run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bench/control_plane.hpp"
#include "bench/executor.hpp"
#include "bench/measure/stopping_criterion.hpp"
#include "core/record/measurement.hpp"
#include "core/record/timeline.hpp"

namespace fsdp {

/// Whether steps are run on known contents and checked. A simulated step moves no data.
enum class Verification { contents, none };

/// A monotonic reading; only differences count. Replaceable, so that tests own the time.
using Clock = std::function<Nanoseconds()>;
Nanoseconds steady_now();

/// Where a measurement stands, for progress lines.
struct SamplingProgress {
  int blocks = 0;                ///< samples of each plan so far
  Nanoseconds elapsed{0};        ///< of sampling, maximum over ranks
  Nanoseconds limit{0};          ///< the time cap
  std::size_t fastest = 0;       ///< plan with the lowest median so far
  double fastest_median_ns = 0;  ///< its median
};

struct SamplerOptions {
  StopConfig stop;  ///< max_time caps the sampling of all plans together
  /// Caps the whole call, verifying and warming up included; 0: no such cap.
  Nanoseconds total_limit{0};
  int warmup = 2;
  int verify_every = 0;  ///< besides once before timing; 0: only then
  Verification verification = Verification::contents;
  int batch = 1;  ///< blocks between two exchanges of figures
  std::uint64_t seed = 1;
  std::function<void(const SamplingProgress&)> on_batch;
};

/// One plan to measure. Neither pointer is owned.
struct SampledPlan {
  PreparedStep* step = nullptr;
  const Schedule* schedule = nullptr;
};

/// What sampling one plan gave on this rank.
struct SampledStep {
  Measurement measurement;
  Timeline timeline;  ///< this rank's, of the iteration nearest to the median
  Allocation allocation;
};

class Sampler {
 public:
  Sampler(ControlPlane& control, const SamplerOptions& options, Clock clock = steady_now);

  /// Runs blocks: each block is one step of every plan, in an order shuffled from the seed, so that
  /// sample i of one plan pairs with sample i of another. Stops when every plan satisfies the
  /// criterion or a cap is reached. Throws WrongData, the same on all ranks, when any rank finds
  /// contents that are not what they should be.
  std::vector<SampledStep> measure_interleaved(std::span<const SampledPlan> plans);
  /// One plan alone.
  SampledStep measure(const SampledPlan& plan);

 private:
  struct Run;
  void verify(std::span<const SampledPlan> plans, Run& run);
  void warm_up(std::span<const SampledPlan> plans);
  void run_block(std::span<const SampledPlan> plans, Run& run);
  void exchange(Run& run);
  static bool decide(Run& run);
  void report(const Run& run) const;
  void begin_sampling(Run& run);

  ControlPlane& control_;
  SamplerOptions options_;
  Clock clock_;
};

/// Throws WrongData on every rank when `found` holds a mismatch on any: the lowest rank's.
/// Collective.
void agree_on_contents(ControlPlane& control, const std::optional<DataMismatch>& found);

/// Order of `plans` plans in block `block`: a permutation that depends on nothing but its arguments
/// (no library distribution is involved, so every platform shuffles alike).
std::vector<std::size_t> block_order(std::size_t plans, std::uint64_t seed, int block);

}  // namespace fsdp
