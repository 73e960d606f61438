// What PyTorch's FSDP2 hooks do to one unit after another: the rules of releases 2.8 to 2.14, one
// function a hook.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/schedule/op_list.hpp"
#include "core/schedule/schedule.hpp"

namespace fsdp {

class Fsdp2 {
 public:
  Fsdp2(const WrapPlan& plan, const FsdpPolicy& policy);

  Schedule build();

 private:
  enum class During { forward, backward };

  /// A unit between hooks.
  struct State {
    BufferId shard;
    BufferId sharded_grad;   // invalid when nothing is trainable
    bool pending = false;    // an all-gather was issued and not yet copied out
    BufferId gather_output;  // of the pending gather
    OpId gathered;
    OpId reduced;                 // newest op of the unit's reduction
    BufferId unsharded;           // valid while the parameters are unsharded
    std::vector<BufferId> grads;  // unsharded gradients, in the order they appeared
    std::vector<int> runs;        // places in the post-forward order
    bool in_backward = false;     // a gradient has reached the unit's outputs
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

  // Hooks, named as PyTorch names them.
  void pre_forward(UnitId unit);
  void post_forward(UnitId unit);
  void root_post_forward();
  void pre_backward(UnitId unit);
  void post_backward(UnitId unit);
  void root_post_backward();
  void finalize_backward(UnitId unit);

  void unshard(UnitId unit);
  void wait_for_unshard(UnitId unit, During during);
  void unshard_locally(UnitId unit);
  void prefetch_backward(UnitId unit);
  void reshard(UnitId unit);
  void compute(const TraceStep& step, During during);
  BufferId gradients_of(const TraceStep& step);
  std::vector<int> reduced_parameters(UnitId unit) const;
  void reduce(UnitId unit);
  void reduce_locally(UnitId unit, BufferId input);
  void release_inputs();
  void release_oldest_input();
  void gather_waits_for(OpId op);

  Buffer buffer(BufferKind kind, UnitId unit, std::int64_t numel,
                std::vector<int> parameters = {}) const;
  BufferId allocate(Buffer buffer);
  void free(BufferId buffer);
  BufferId resident(Buffer buffer);
  bool collectives() const;
  State& state(UnitId unit) { return states_[unit.index()]; }
  const FsdpUnit& unit_at(UnitId unit) const { return plan_.units[unit.index()]; }

  const WrapPlan& plan_;
  const FsdpPolicy& policy_;
  std::vector<State> states_;
  std::vector<Buffer> buffers_;
  OpList ops_;
  std::vector<UnitId> post_forward_order_;
  std::optional<Held> held_;
  std::deque<InFlight> in_flight_;
  std::vector<std::vector<UnitId>>
      forward_lists_;  // explicit prefetch, by unit; empty is PyTorch's default
  std::vector<std::vector<UnitId>> backward_lists_;
};

}  // namespace fsdp
