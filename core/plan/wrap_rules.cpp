#include "core/plan/wrap_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <set>

#include "core/plan/size_rules.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

std::vector<std::string> blocks_or_throw(const ModelSpec& model, std::string_view rule) {
  std::vector<std::string> blocks = block_paths(model);
  if (blocks.empty()) {
    throw UsageError(
        fmt::format("policy.wrap: {} needs transformer blocks, and no module class of {} ends in "
                    "Block or Layer; name the classes with wrap: {{class: [...]}} or the modules "
                    "with wrap: {{groups: ...}}",
                    rule, model.name.empty() ? "the model" : model.name));
  }
  return blocks;
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

/// A unit each module but the root that `wanted` picks, children before parents.
template <class Wanted>
void collect(const Module& module, const Wanted& wanted, ModuleGroups& out) {
  for (const Module& child : module.children) {
    collect(child, wanted, out);
  }
  if (!module.path.empty() && wanted(module)) {
    out.push_back({module.path});
  }
}

bool holds_matrix(const Module& module) {
  const auto matrix = [](const Parameter& p) { return p.shape.size() > 1; };
  return std::any_of(module.parameters.begin(), module.parameters.end(), matrix) ||
         std::any_of(module.children.begin(), module.children.end(), holds_matrix);
}

/// Children that hold a matrix; of a list, its elements.
void collect_parts(const Module& module, ModuleGroups& out) {
  for (const Module& child : module.children) {
    if (is_container(child)) {
      collect_parts(child, out);
    } else if (holds_matrix(child)) {
      out.push_back({child.path});
    }
  }
}

std::string name_of(const ModelSpec& model) {
  return model.name.empty() ? "the model" : model.name;
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

  ModuleGroups operator()(const WrapPartition& rule) const {
    const std::vector<std::string> blocks = blocks_or_throw(model, "a partition of blocks");
    ModuleGroups out;
    auto next = blocks.begin();
    for (const int count : rule.blocks) {
      if (count < 1 || count > blocks.end() - next) {
        throw UsageError(fmt::format(
            "policy.wrap.partition: {} must be at least 1 each and add up to the {} blocks of {}",
            fmt::join(rule.blocks, " + "), blocks.size(), name_of(model)));
      }
      out.emplace_back(next, next + count);
      next += count;
    }
    if (next != blocks.end()) {
      throw UsageError(fmt::format("policy.wrap.partition: {} leaves out {} of the {} blocks of {}",
                                   fmt::join(rule.blocks, " + "), blocks.end() - next,
                                   blocks.size(), name_of(model)));
    }
    return out;
  }

  ModuleGroups operator()(const WrapSubBlock&) const {
    ModuleGroups out;
    for (const std::string& block : blocks_or_throw(model, "parts of blocks")) {
      collect_parts(*find_module(model.root, block), out);
    }
    return out;
  }

  ModuleGroups operator()(const WrapAlways&) const {
    ModuleGroups out;
    collect(
        model.root, [](const Module& m) { return !is_container(m); }, out);
    return out;
  }

  ModuleGroups operator()(const WrapName& rule) const {
    const std::regex pattern = compiled(rule.pattern, "policy.wrap.name");
    ModuleGroups out;
    collect(
        model.root, [&](const Module& m) { return std::regex_match(m.path, pattern); }, out);
    if (out.empty()) {
      throw UsageError(fmt::format("policy.wrap.name: no module path of {} matches '{}' as a whole",
                                   name_of(model), rule.pattern));
    }
    return out;
  }

  ModuleGroups operator()(const WrapSize& rule) const { return size_groups(model, rule); }

  ModuleGroups operator()(const WrapTotalSize& rule) const {
    return total_size_groups(model, rule);
  }

  ModuleGroups operator()(const WrapTitan&) const {
    const std::vector<std::string> blocks = blocks_or_throw(model, "titan");
    Outside outside = outside_blocks(model, blocks);
    ModuleGroups out;
    for (const std::string& block : blocks) {
      out.push_back({block});
    }
    if (has_ties(model)) {
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
    collect(
        model.root,
        [&](const Module& m) {
          return std::find(rule.classes.begin(), rule.classes.end(), m.class_name) !=
                 rule.classes.end();
        },
        out);
    if (out.empty()) {
      throw UsageError(fmt::format("policy.wrap.class: no module of {} has class {}",
                                   name_of(model), fmt::join(rule.classes, " or ")));
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

std::regex compiled(const std::string& pattern, std::string_view key) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw UsageError(fmt::format("{}: '{}' is not a regular expression", key, pattern));
  }
}

ModuleGroups module_groups(const ModelSpec& model, const WrapRule& rule) {
  return std::visit(Groups{model}, rule);
}

}  // namespace fsdp
