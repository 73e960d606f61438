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

/// A parameter as a unit holds it, sharded on dimension 0 over W ranks (PyTorch per-parameter
/// layout): rows = ceil(d0 / W), shard numel = rows * d1 * ..., padded numel = W * shard numel.
struct UnitParameter {
  std::string path;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  bool trainable = true;
  std::int64_t numel = 0;
  std::int64_t shard_numel = 0;
  std::int64_t padded_numel = 0;
};

/// One FSDP communication group: the parameters that one all-gather brings.
struct FsdpUnit {
  std::string name;                  ///< module paths joined by '+'; the outermost module is "root"
  std::vector<std::string> modules;  ///< the modules given to one fully_shard call
  std::vector<UnitParameter> parameters;  ///< in layout order
  std::int64_t numel = 0;
  std::int64_t shard_numel = 0;
  std::int64_t padded_numel = 0;
  DType param_dtype = DType::bf16;  ///< gathered and computed in
  DType reduce_dtype = DType::f32;  ///< reduced in
  DType master_dtype = DType::f32;  ///< the resident shard
  Reshard reshard_after_forward;
  int module_order = 0;  ///< place in named_modules() order; the root is first
};
using UnitId = Id<FsdpUnit>;

/// One step of a forward pass, seen by FSDP's hooks. Backward runs the list in reverse.
struct TraceStep {
  enum class Kind { enter, compute, exit };
  Kind kind = Kind::compute;
  UnitId unit;
  /// enter: a gradient reaches the unit's inputs, so its reduction runs inside backward (else after
  /// it). exit: a gradient reaches its outputs, so backward gathers it at all.
  bool requires_grad = false;
  std::vector<Gemm> forward{};   ///< compute
  std::vector<Gemm> backward{};  ///< compute
  std::vector<int>
      gradients{};  ///< compute: indices into the unit's parameters that get a gradient
};

struct WrapPlan {
  DeviceMesh mesh;
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
