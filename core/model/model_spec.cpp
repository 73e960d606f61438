#include "core/model/model_spec.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string_view>

namespace fsdp {
namespace {

bool is_block_class(std::string_view class_name) {
  static constexpr std::array<std::string_view, 3> endings{"Block", "DecoderLayer", "EncoderLayer"};
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return class_name.size() >= ending.size() &&
           class_name.substr(class_name.size() - ending.size()) == ending;
  });
}

void collect_blocks(const Module& module, std::vector<std::string>& out) {
  if (is_block_class(module.class_name)) {
    out.push_back(module.path);
    return;
  }
  for (const Module& child : module.children) {
    collect_blocks(child, out);
  }
}

std::int64_t own_total(const Module& module) {
  std::int64_t total = 0;
  for (const Parameter& parameter : module.parameters) {
    total += parameter.tied_to.empty() ? parameter.numel() : 0;
  }
  for (const Module& child : module.children) {
    total += own_total(child);
  }
  return total;
}

}  // namespace

std::int64_t Parameter::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string join_path(const std::string& module_path, const std::string& name) {
  return module_path.empty() ? name : module_path + "." + name;
}

bool is_within(const std::string& path, const std::string& ancestor) {
  if (ancestor.empty() || path == ancestor) {
    return true;
  }
  return path.size() > ancestor.size() && path.compare(0, ancestor.size(), ancestor) == 0 &&
         path[ancestor.size()] == '.';
}

const Module* find_module(const Module& root, const std::string& path) {
  if (root.path == path) {
    return &root;
  }
  for (const Module& child : root.children) {
    if (is_within(path, child.path)) {
      return find_module(child, path);
    }
  }
  return nullptr;
}

std::int64_t parameter_total(const ModelSpec& model) { return own_total(model.root); }

std::vector<std::string> block_paths(const ModelSpec& model) {
  std::vector<std::string> out;
  for (const Module& child : model.root.children) {
    collect_blocks(child, out);
  }
  return out;
}

}  // namespace fsdp
