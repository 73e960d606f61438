// Module trees as JSON: how a model outside the built-in families is described, one forward's calls
// included.
#pragma once

#include <string>
#include <string_view>

#include "core/model/model_spec.hpp"

namespace fsdp {

/// Reads {"root": MODULE, "calls": [{"module", "input_requires_grad"}, ...]}, where a MODULE is
/// {"name": full path, "class", "parameters": [{"name", "shape", "dtype", "trainable",
/// "tied_to"}], "children": [MODULE, ...], "attention": {"heads", "head_dim"},
/// "experts": {"count", "per_token"}}. Optional: "parameters", "children", "attention", "experts",
/// "dtype" (f32), "trainable" (true), "tied_to" (null), and beside the root "name" (the root's
/// class) and "scaling" (empty).
/// Throws UsageError that starts with the JSON pointer of the offending value.
ModelSpec read_module_tree(std::string_view json);

/// The same document; read_module_tree gives the model back.
std::string write_module_tree(const ModelSpec& model);

}  // namespace fsdp
