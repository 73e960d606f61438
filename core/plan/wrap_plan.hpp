// FSDP units and what one forward does to them: who owns which parameter, how it is sharded and
// padded, and in which order units are entered, computed and left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/batch.hpp"
#include "core/model/device_mesh.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/gemm.hpp"
#include "core/model/model_spec.hpp"
#include "core/units/id.hpp"

namespace fsdp {

/// A parameter as a unit holds it. FSDP2 cuts each along one dimension over W ranks: rows =
/// ceil(d0 / W), shard numel = rows * d1 * ..., padded numel = W * shard numel; another dimension
/// must divide evenly. FSDP1 places it in the unit's flat parameter, which alone is cut; its own
/// shard and padded numel are then its numel.
struct UnitParameter {
  std::string path;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  DType gather_dtype = DType::f32;  ///< gathered and computed in
  bool trainable = true;
  int shard_dim = 0;
  std::int64_t numel = 0;
  std::int64_t shard_numel = 0;
  std::int64_t padded_numel = 0;
  std::int64_t flat_offset = 0;  ///< FSDP1: place in the flat parameter
};

/// One FSDP communication group: the parameters that one all-gather brings.
struct FsdpUnit {
  std::string name;                  ///< module paths joined by '+'; the outermost module is "root"
  std::vector<std::string> modules;  ///< the modules given to one fully_shard call
  std::vector<UnitParameter> parameters;  ///< in layout order
  std::int64_t numel = 0;
  std::int64_t shard_numel = 0;
  std::int64_t padded_numel = 0;
  DType param_dtype = DType::bf16;  ///< computed in; of a mixed unit the widest
  DType reduce_dtype = DType::f32;  ///< reduced in
  DType master_dtype = DType::f32;  ///< the resident shard; of a mixed unit the trainable one
  /// What the all-gather moves: elements of one dtype, or bytes (u8) when parameters differ.
  DType gather_dtype = DType::bf16;
  std::int64_t gather_shard_numel = 0;  ///< in gather_dtype
  Reshard reshard_after_forward;
  int module_order = 0;  ///< place in named_modules() order; the root is first
};
using UnitId = Id<FsdpUnit>;

/// One step of a forward pass, seen by FSDP's hooks. Backward runs the list in reverse.
struct TraceStep {
  enum class Kind {
    enter,
    compute,
    exit,
    checkpoint_begin,  ///< of a block under activation checkpointing; it has no unit
    checkpoint_end,
  };
  Kind kind = Kind::compute;
  UnitId unit;
  /// enter: a gradient reaches the unit's inputs, so its reduction runs inside backward (else after
  /// it). exit: a gradient reaches its outputs, so backward gathers it at all. compute: it
  /// has a backward.
  bool requires_grad = false;
  /// exit: the output is the very tensor that the unit left right before returned, so that
  /// gradients reach that unit's hooks first.
  bool same_output = false;
  bool reads_parameters = false;  ///< compute: scores and values of attention do not
  std::vector<Gemm> forward{};    ///< compute
  std::vector<Gemm> backward{};   ///< compute
  std::vector<Gemm> recompute{};  ///< compute: what activation checkpointing repeats
  std::vector<int>
      gradients{};  ///< compute: indices into the unit's parameters that get a gradient
};

struct WrapPlan {
  DeviceMesh mesh;
  FsdpPolicy policy;  ///< without a preset: the knobs it stands for
  Batch batch;
  std::vector<FsdpUnit> units;   ///< in order of first use
  std::vector<TraceStep> trace;  ///< of one forward

  const FsdpUnit& operator[](UnitId id) const { return units[id.index()]; }
};

/// Applies the policy's wrap rule and layout to the model.
/// Throws UsageError naming the offending module or rule (a group that names a missing module, k <
/// 1, ...).
WrapPlan plan_units(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh,
                    const Batch& batch);

}  // namespace fsdp
