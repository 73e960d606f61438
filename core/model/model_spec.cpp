#include "core/model/model_spec.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <system_error>

namespace fsdp {
namespace {

/// GPT2Block, LlamaDecoderLayer, ViTLayer; T5LayerFF and LayerNorm end otherwise.
bool is_block(const Module& module) {
  const std::string_view name = module.class_name;
  return name.ends_with("Block") || name.ends_with("Layer");
}

void collect_blocks(const Module& module, std::vector<std::string>& out) {
  if (is_block(module)) {
    out.push_back(module.path);
    return;
  }
  for (const Module& child : module.children) {
    collect_blocks(child, out);
  }
}

/// The child of a long list that its index names, so that looking up every module of a deep model
/// does not compare every pair of layers. Nullptr where the children are not numbered like that.
const Module* numbered_child(const Module& module, std::string_view path) {
  const std::size_t begin = module.path.empty() ? 0 : module.path.size() + 1;
  if (begin >= path.size()) {
    return nullptr;
  }
  const std::string_view rest = path.substr(begin);
  const std::string_view component = rest.substr(0, rest.find('.'));
  std::size_t index = 0;
  const auto [end, error] =
      std::from_chars(component.data(), component.data() + component.size(), index);
  if (error != std::errc{} || end != component.data() + component.size() ||
      index >= module.children.size()) {
    return nullptr;
  }
  return &module.children[index];
}

void set_dtype_below(Module& module, DType dtype) {
  for (Parameter& parameter : module.parameters) {
    parameter.dtype = parameter.trainable ? dtype : parameter.dtype;
  }
  for (Module& child : module.children) {
    set_dtype_below(child, dtype);
  }
}

bool has_ties_below(const Module& module) {
  const auto tied = [](const Parameter& parameter) { return !parameter.tied_to.empty(); };
  return std::any_of(module.parameters.begin(), module.parameters.end(), tied) ||
         std::any_of(module.children.begin(), module.children.end(), has_ties_below);
}

/// Storages below a module, by the path of the parameter that owns them.
using Storages = std::map<std::string, std::int64_t>;

void collect_storages(const Module& module, Storages& out) {
  for (const Parameter& parameter : module.parameters) {
    out.emplace(
        parameter.tied_to.empty() ? join_path(module.path, parameter.name) : parameter.tied_to,
        parameter.numel());
  }
  for (const Module& child : module.children) {
    collect_storages(child, out);
  }
}

}  // namespace

std::int64_t Parameter::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string join_path(const std::string& module_path, const std::string& name) {
  return module_path.empty() ? name : module_path + "." + name;
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string parent_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

bool is_within(const std::string& path, const std::string& ancestor) {
  if (ancestor.empty() || path == ancestor) {
    return true;
  }
  return path.size() > ancestor.size() && path.compare(0, ancestor.size(), ancestor) == 0 &&
         path[ancestor.size()] == '.';
}

bool is_container(const Module& module) {
  return module.class_name == "ModuleList" || module.class_name == "ModuleDict";
}

const Module* find_module(const Module& root, const std::string& path) {
  if (root.path == path) {
    return &root;
  }
  if (const Module* child = numbered_child(root, path);
      child != nullptr && is_within(path, child->path)) {
    return find_module(*child, path);
  }
  for (const Module& child : root.children) {
    if (is_within(path, child.path)) {
      return find_module(child, path);
    }
  }
  return nullptr;
}

std::int64_t elements_below(const Module& module) {
  Storages storages;
  collect_storages(module, storages);
  return std::accumulate(
      storages.begin(), storages.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& storage) { return sum + storage.second; });
}

std::int64_t parameter_total(const ModelSpec& model) { return elements_below(model.root); }

bool has_ties(const ModelSpec& model) { return has_ties_below(model.root); }

void set_dtype(ModelSpec& model, DType dtype) { set_dtype_below(model.root, dtype); }

std::vector<std::string> block_paths(const ModelSpec& model) {
  std::vector<std::string> out;
  for (const Module& child : model.root.children) {
    collect_blocks(child, out);
  }
  return out;
}

}  // namespace fsdp
