// What the code of a training framework decides for the user, as the knobs it stands for.
#pragma once

#include "core/model/device_mesh.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"

namespace fsdp {

/// The policy without its preset; unchanged when it has none. Sources: torchtitan 0.3.0, accelerate
/// 1.15 (both recorded, tests/golden), torchtune's shard_model (documented).
/// Throws UsageError when the model lacks what the framework's code takes for granted.
FsdpPolicy apply_preset(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh);

}  // namespace fsdp
