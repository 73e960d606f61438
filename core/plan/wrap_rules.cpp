#include "core/plan/wrap_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

std::vector<std::string> blocks_or_throw(const ModelSpec& model, std::string_view rule) {
  std::vector<std::string> blocks = block_paths(model);
  if (blocks.empty()) {
    throw UsageError(
        fmt::format("policy.wrap: {} needs transformer blocks, and no module class of {} ends in "
                    "Block, DecoderLayer or "
                    "EncoderLayer; name the classes with wrap: {{class: [...]}} or the modules "
                    "with wrap: {{groups: ...}}",
                    rule, model.name.empty() ? "the model" : model.name));
  }
  return blocks;
}

bool has_tie(const Module& module) {
  const auto tied = [](const Parameter& p) { return !p.tied_to.empty(); };
  return std::any_of(module.parameters.begin(), module.parameters.end(), tied) ||
         std::any_of(module.children.begin(), module.children.end(), has_tie);
}

/// Modules with parameters of their own outside the blocks, by whether they run before the first or
/// after it.
struct Outside {
  std::vector<std::string> before;
  std::vector<std::string> after;
};

Outside outside_blocks(const ModelSpec& model, const std::vector<std::string>& blocks) {
  Outside out;
  std::set<std::string> seen;
  bool block_ran = false;
  for (const ModuleCall& call : model.calls) {
    const bool in_block = std::any_of(blocks.begin(), blocks.end(),
                                      [&](const auto& b) { return is_within(call.module, b); });
    block_ran = block_ran || in_block;
    // A module that holds blocks cannot be grouped apart from them; its own parameters stay with
    // the root.
    const bool holds_block = std::any_of(blocks.begin(), blocks.end(),
                                         [&](const auto& b) { return is_within(b, call.module); });
    const Module* module = find_module(model.root, call.module);
    if (in_block || holds_block || module == nullptr || module->parameters.empty() ||
        !seen.insert(call.module).second) {
      continue;
    }
    (block_ran ? out.after : out.before).push_back(call.module);
  }
  return out;
}

void collect_classes(const Module& module, const std::vector<std::string>& classes,
                     ModuleGroups& out) {
  for (const Module& child : module.children) {
    collect_classes(child, classes, out);
  }
  if (!module.path.empty() &&
      std::find(classes.begin(), classes.end(), module.class_name) != classes.end()) {
    out.push_back({module.path});
  }
}

struct Groups {
  const ModelSpec& model;

  ModuleGroups operator()(const WrapNone&) const { return {}; }

  ModuleGroups operator()(const WrapBlock&) const { return (*this)(WrapEvery{1}); }

  ModuleGroups operator()(const WrapEvery& rule) const {
    if (rule.blocks < 1) {
      throw UsageError(fmt::format("policy.wrap.every: {} blocks a unit; at least 1", rule.blocks));
    }
    const std::vector<std::string> blocks = blocks_or_throw(model, "every k blocks");
    const auto step = static_cast<std::size_t>(rule.blocks);
    ModuleGroups out;
    for (std::size_t i = 0; i < blocks.size(); i += step) {
      const std::size_t end = std::min(blocks.size(), i + step);
      out.emplace_back(blocks.begin() + static_cast<std::ptrdiff_t>(i),
                       blocks.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return out;
  }

  ModuleGroups operator()(const WrapTitan&) const {
    const std::vector<std::string> blocks = blocks_or_throw(model, "titan");
    Outside outside = outside_blocks(model, blocks);
    ModuleGroups out;
    for (const std::string& block : blocks) {
      out.push_back({block});
    }
    if (has_tie(model.root)) {
      outside.before.insert(outside.before.end(), outside.after.begin(), outside.after.end());
      outside.after.clear();
    }
    for (auto* group : {&outside.before, &outside.after}) {
      if (!group->empty()) {
        out.push_back(*group);
      }
    }
    return out;
  }

  ModuleGroups operator()(const WrapClass& rule) const {
    ModuleGroups out;
    collect_classes(model.root, rule.classes, out);
    if (out.empty()) {
      throw UsageError(fmt::format("policy.wrap.class: no module of {} has class {}",
                                   model.name.empty() ? "the model" : model.name,
                                   fmt::join(rule.classes, " or ")));
    }
    return out;
  }

  ModuleGroups operator()(const WrapGroups& rule) const {
    for (const auto& group : rule.groups) {
      for (const std::string& path : group) {
        if (path.empty() || find_module(model.root, path) == nullptr) {
          throw UsageError(
              fmt::format("policy.wrap.groups: the model has no module '{}' (the root takes what "
                          "is left by itself)",
                          path));
        }
      }
    }
    return rule.groups;
  }
};

}  // namespace

ModuleGroups module_groups(const ModelSpec& model, const WrapRule& rule) {
  return std::visit(Groups{model}, rule);
}

}  // namespace fsdp
