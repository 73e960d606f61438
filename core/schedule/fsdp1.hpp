// What PyTorch's FullyShardedDataParallel does to one unit after another, one function a hook; its
// schedule has not changed since release 2.1.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/step_writer.hpp"
#include "core/schedule/trace_walk.hpp"

namespace fsdp {

class Fsdp1 {
 public:
  /// What one step leaves to the next: frees the limiter has not waited for, and the order of the
  /// very first forward.
  struct Carried {
    std::vector<UnitId> frees;
    std::vector<UnitId> forward_order;  ///< empty before the first micro-batch
    std::vector<UnitId> unsharded;      ///< nothing ever frees: frozen, and kept after forward
  };

  Fsdp1(const WrapPlan& plan, Carried carried);

  Schedule build();
  /// After build().
  Carried carried() const;

 private:
  enum class Training { idle, forward, backward_pre, backward_post };
  /// A unit ("handle") between hooks.
  struct State {
    BufferId shard;
    BufferId sharded_grad;  // invalid until reduced
    BufferId cast;          // the shard in the parameter dtype, until its gather has read it
    BufferId unsharded;     // valid while allocated
    std::vector<BufferId> grads;
    BufferId flat_grad;
    int gradients_due = 0;  // parameters whose gradient has not appeared in this backward
    /// Step of forward in which autograd first saw the parameters; their gradients are put together
    /// when backward comes to it.
    std::size_t views_made_at = 0;
    bool views_made = false;
    bool points_to_unsharded = false;
    Training training = Training::idle;
    bool in_backward = false;
    bool prefetched = false;
    bool needs_forward_unshard = false;
    bool needs_backward_unshard = false;
    bool ran_pre_backward = false;
    std::optional<int> post_forward_index;
  };
  struct FreeEvent {
    UnitId unit;
    OpId freed;  // invalid when it was in the step before
  };

  void forward();
  void backward();
  void root_pre_forward();
  void pre_forward(UnitId unit);
  void post_forward(UnitId unit, const TraceStep& step);
  void pre_backward(UnitId unit);
  void post_backward_at(std::size_t step);
  void post_backward(UnitId unit);
  void post_backward_reshard(UnitId unit);
  void root_post_backward();
  void recompute(TraceSteps::const_iterator end);

  void unshard(UnitId unit);
  void cast_shard(UnitId unit);
  void limit_all_gathers(UnitId unit);
  void gather(UnitId unit);
  void reshard(UnitId unit, bool frees);
  void prefetch(UnitId unit);
  std::optional<UnitId> prefetch_target(UnitId unit) const;
  bool frees_in_backward() const;

  void compute(const TraceStep& step);
  void backward_compute(const TraceStep& step);
  void concatenate(UnitId unit);
  void reduce(UnitId unit);
  BufferId reduction_input(UnitId unit);
  void reduce_shards(UnitId unit, BufferId input);
  void reduce_whole(UnitId unit, BufferId input);
  void accumulate(UnitId unit, BufferId output, Stream stream);
  void drop_leftovers();

  bool shards() const { return plan_.mesh.shard > 1; }
  bool is_hybrid() const;
  bool frees_after_forward() const;
  bool casts(UnitId unit) const;
  State& state(UnitId unit) { return states_[unit.index()]; }
  const FsdpUnit& unit_at(UnitId unit) const { return plan_.units[unit.index()]; }

  const WrapPlan& plan_;
  const FsdpPolicy& policy_;
  StepWriter writer_;
  std::vector<State> states_;
  std::vector<UnitId> left_unsharded_;
  std::deque<FreeEvent> free_events_;
  std::vector<UnitId> forward_order_;
  bool first_forward_;
  bool last_micro_ = true;
  bool reduces_ = true;
  std::vector<UnitId> post_forward_order_;
  std::optional<std::size_t> step_;  // of the trace, in forward
};

/// The schedule of a steady-state step, the third.
Schedule build_fsdp1(const WrapPlan& plan);

}  // namespace fsdp
