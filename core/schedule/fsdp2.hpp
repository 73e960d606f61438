// What PyTorch's FSDP2 hooks do to one unit after another: the rules of releases 2.8 to 2.15, one
// function a hook.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/step_writer.hpp"
#include "core/schedule/trace_walk.hpp"

namespace fsdp {

class Fsdp2 {
 public:
  explicit Fsdp2(const WrapPlan& plan);

  Schedule build();

 private:
  enum class During { forward, backward };
  enum class Addition { none, on_host };
  enum class Training { idle, forward, pre_backward, post_backward };

  /// What one micro-batch does with gradients and parameters.
  struct Micro {
    bool last = true;
    bool reduces = true;      ///< set_requires_gradient_sync
    bool all_reduces = true;  ///< set_requires_all_reduce
    bool reshards = true;     ///< set_reshard_after_backward
  };

  /// A unit between hooks.
  struct State {
    BufferId shard;
    BufferId sharded_grad;  // invalid until reduced
    BufferId partial;       // reduce-scattered but not yet all-reduced
    BufferId all_reduced;   // kept until the compute stream has waited for the all-reduce
    Training training = Training::idle;
    bool pending = false;    // an all-gather was issued and not yet copied out
    BufferId gather_output;  // of the pending gather
    OpId gathered;
    OpId reduced;                       // newest op of the unit's newest reduction
    OpId resharded_at;                  // to a sub-group, until the next gather has waited for it
    BufferId unsharded;                 // valid while the parameters are unsharded
    BufferId resharded;                 // valid while they are on a sub-group
    std::vector<BufferId> grads;        // of this micro-batch, in the order they appeared
    std::vector<BufferId> accumulated;  // of earlier ones, in the reduce dtype
    std::vector<int> runs;              // places in the post-forward order
  };
  /// The gather output that PyTorch keeps until the next unit's copy-out in forward.
  struct Held {
    BufferId output;
    OpId copied_out;
  };
  struct InFlight {
    BufferId input;
    OpId reduced;
  };
  /// What the sums of one reduction go through.
  struct Reduction {
    BufferId input;
    BufferId output;  // the sharded gradient itself when no cast and no addition follow
    std::vector<int> parameters;
    std::int64_t row = 0;
  };
  /// Kernels and operators that make a sum an average.
  struct Division {
    double before = 1;
    double after = 1;
    ReduceOp scatter = ReduceOp::sum;
    ReduceOp all_reduce = ReduceOp::sum;
    double factor = 1;  // of premul_sum
  };

  void forward();
  void backward();
  void recompute(TraceSteps::const_iterator end);
  void recompute_enter(UnitId unit);
  void recompute_exit(UnitId unit);

  // Hooks, named as PyTorch names them.
  void root_pre_forward();
  void pre_forward(UnitId unit);
  void post_forward(UnitId unit);
  void root_post_forward();
  void pre_backward(UnitId unit);
  void post_backward(UnitId unit);
  void root_post_backward();
  void finalize_backward(UnitId unit);

  void unshard(UnitId unit, During during);
  BufferId gather_input(UnitId unit);
  void wait_for_unshard(UnitId unit, During during);
  void copy_out(UnitId unit, std::optional<Held> previous);
  void unshard_locally(UnitId unit);
  void prefetch_backward(UnitId unit);
  void reshard(UnitId unit);
  void reshard_to_submesh(UnitId unit);
  void compute(const TraceStep& step, During during);
  void run(UnitId unit, Compute work);

  void collect_gradients(const TraceStep& step, Compute& compute);
  void add_to_accumulated(UnitId unit);
  void accumulate_in_reduce_dtype(UnitId unit);
  void reduce(UnitId unit);
  Reduction pack(UnitId unit);
  Division division(const FsdpUnit& unit) const;
  void reduce_scatter(UnitId unit, Reduction& reduction, const Division& division);
  BufferId output_of(UnitId unit, const Reduction& reduction);
  BufferId sharded_gradient(UnitId unit, const Reduction& reduction);
  void all_reduce(UnitId unit, const Reduction& reduction, const Division& division);
  void view_out(UnitId unit, const Reduction& reduction, Stream stream);
  void offload_gradient(UnitId unit, BufferId from, Addition addition);
  void release_output(UnitId unit, BufferId output, Stream stream);
  void free_all_reduced(UnitId unit);
  void release_inputs();
  void release_oldest_input();

  int gather_ranks(UnitId unit) const;
  bool collectives() const;
  bool hybrid() const { return plan_.mesh.replicate > 1; }
  State& state(UnitId unit) { return states_[unit.index()]; }
  const FsdpUnit& unit_at(UnitId unit) const { return plan_.units[unit.index()]; }
  std::vector<UnitId> module_order() const;

  const WrapPlan& plan_;
  const FsdpPolicy& policy_;
  StepWriter writer_;
  Micro micro_;
  std::vector<State> states_;
  std::vector<UnitId> post_forward_order_;
  std::optional<Held> held_;
  UnitId recompute_root_;  // the outermost unit of a checkpointed block while it is repeated
  std::deque<InFlight> in_flight_;
  std::map<Stream, OpId> last_reduced_;  // newest reduction by the stream it ended on
  std::vector<OpId> offloaded_;          // gradients on their way to the host
  std::vector<std::vector<UnitId>>
      forward_lists_;  // explicit prefetch, by unit; empty is PyTorch's default
  std::vector<std::vector<UnitId>> backward_lists_;
};

}  // namespace fsdp
