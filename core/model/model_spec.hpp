// The model as FSDP sees it: a tree of modules with their own parameters, and the order in which
// one forward calls them. The same shape as the module-tree JSON of tests/golden
// (docs/ARCHITECTURE.md names its keys).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/dtype.hpp"

namespace fsdp {

struct Parameter {
  std::string name;  ///< last component: "weight"
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  bool trainable = true;
  std::string tied_to;  ///< full path of the first parameter that owns this storage; empty when it
                        ///< is the owner

  std::int64_t numel() const;
};

/// Shape of the score and value products of an attention module; absent where a tree does not say.
struct Attention {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};

/// Routed experts whose weights are stacked along dimension 0; absent where a tree does not say.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;  ///< how many of them a token visits
};

struct Module {
  std::string path;  ///< "model.layers.0.mlp"; empty for the root
  std::string class_name;
  std::vector<Parameter> parameters;  ///< its own only, in registration order
  std::vector<Module> children;
  std::optional<Attention> attention;
  std::optional<Experts> experts = std::nullopt;
};

/// One module call of a forward pass.
struct ModuleCall {
  std::string module;
  bool input_requires_grad = false;
};

struct ModelSpec {
  std::string name;
  /// How the model differs from the one it is named after ("vocab 50257 -> 5024"); empty when it
  /// does not.
  std::string scaling;
  Module root;
  std::vector<ModuleCall> calls;
};

/// "model.norm" + "weight" -> "model.norm.weight"; the root's path is empty.
std::string join_path(const std::string& module_path, const std::string& name);
/// "model.norm" -> "norm".
std::string_view last_component(std::string_view path);
/// "model.norm.weight" -> "model.norm"; of a single component the root's path.
std::string parent_path(const std::string& path);
/// True when `path` is `ancestor` or lies below it.
bool is_within(const std::string& path, const std::string& ancestor);
/// True for a list or a dictionary of modules, which has no forward and so no hooks that run.
bool is_container(const Module& module);
/// The module at `path`, or nullptr.
const Module* find_module(const Module& root, const std::string& path);
/// Elements of all parameters below `module`, each storage once, also one that is owned elsewhere.
std::int64_t elements_below(const Module& module);
/// Elements of all parameters, each tied storage counted once.
std::int64_t parameter_total(const ModelSpec& model);
/// Whether any parameter is another name for the storage of an earlier one.
bool has_ties(const ModelSpec& model);
/// Gives every trainable parameter another element type.
void set_dtype(ModelSpec& model, DType dtype);
/// Paths of the transformer blocks in module order: outermost modules whose class name ends in
/// Block or Layer.
std::vector<std::string> block_paths(const ModelSpec& model);

}  // namespace fsdp
