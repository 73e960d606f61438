#include "core/plan/presets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "core/plan/path_patterns.hpp"
#include "core/plan/wrap_rules.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

using Path = std::optional<std::string>;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The modules frameworks treat apart from the blocks.
struct Landmarks {
  std::vector<std::string> blocks;
  Path embedding;  ///< get_input_embeddings: the table of the tokens
  Path norm;       ///< the last norm beside the stack of blocks
  Path head;       ///< get_output_embeddings
};

/// What get_input_embeddings of transformers returns: the table of the tokens or, for images, the
/// module that makes patches of them.
Path input_embedding(const ModelSpec& model) {
  for (const ModuleCall& call : model.calls) {
    const Module* module = find_module(model.root, call.module);
    if (contains(module->class_name, "PatchEmbeddings")) {
      return module->path;
    }
    if (contains(module->class_name, "Embedding") && !module->parameters.empty() &&
        module->parameters.front().shape.size() == 2) {
      // A table that is registered under a second name is one module to PyTorch.
      const std::string& owner = module->parameters.front().tied_to;
      return owner.empty() ? module->path : parent_path(owner);
    }
  }
  return std::nullopt;
}

/// The last child with "Norm" in its class of the module around the one stack of blocks.
Path final_norm(const ModelSpec& model, const std::vector<std::string>& blocks) {
  std::set<std::string> stacks;
  for (const std::string& block : blocks) {
    stacks.insert(parent_path(block));
  }
  if (stacks.size() != 1) {
    return std::nullopt;  // an encoder and a decoder have one each
  }
  const Module* around = find_module(model.root, parent_path(*stacks.begin()));
  Path norm;
  for (const Module& child : around->children) {
    if (contains(child.class_name, "Norm")) {
      norm = child.path;
    }
  }
  return norm;
}

Path output_head(const ModelSpec& model) {
  static constexpr std::array<std::string_view, 4> names{"lm_head", "output", "embed_out",
                                                         "output_layer"};
  for (const Module& child : model.root.children) {
    if (std::find(names.begin(), names.end(), child.path) != names.end()) {
      return child.path;
    }
  }
  return std::nullopt;
}

Landmarks landmarks(const ModelSpec& model) {
  Landmarks out{.blocks = block_paths(model),
                .embedding = input_embedding(model),
                .norm = {},
                .head = output_head(model)};
  out.norm = final_norm(model, out.blocks);
  return out;
}

std::vector<std::string> present(std::initializer_list<Path> paths) {
  std::vector<std::string> out;
  for (const Path& path : paths) {
    if (path) {
      out.push_back(*path);
    }
  }
  return out;
}

std::string unit_name(const std::vector<std::string>& group) {
  return fmt::format("{}", fmt::join(group, "+"));
}

void add(ModuleGroups& groups, std::vector<std::string> group) {
  if (!group.empty()) {
    groups.push_back(std::move(group));
  }
}

/// Routed experts: three-dimensional parameters (expert, out, in) in a module of experts.
void collect_experts(const Module& module, std::vector<const Parameter*>& parameters,
                     std::vector<std::string>& paths) {
  for (const Parameter& parameter : module.parameters) {
    if (parameter.shape.size() == 3 && contains(module.class_name, "Experts")) {
      parameters.push_back(&parameter);
      paths.push_back(join_path(module.path, parameter.name));
    }
  }
  for (const Module& child : module.children) {
    collect_experts(child, parameters, paths);
  }
}

struct Applied {
  const ModelSpec& model;
  const DeviceMesh& mesh;
  FsdpPolicy policy;

  FsdpPolicy operator()(const TitanPreset& preset) {
    const Landmarks marks = landmarks(model);
    ModuleGroups groups;
    std::vector<std::string> tail = present({marks.norm, marks.head});
    if (has_ties(model)) {
      tail = present({marks.embedding, marks.norm, marks.head});
    } else {
      add(groups, present({marks.embedding}));
    }
    for (const std::string& block : marks.blocks) {
      add(groups, {block});
    }
    policy.reshard_after_forward =
        preset.reshard == TitanReshard::never ? Reshard::keep() : Reshard::free();
    if (!tail.empty()) {
      policy.reshard_units[unit_name(tail)] =
          preset.reshard == TitanReshard::always ? Reshard::free() : Reshard::keep();
    }
    add(groups, std::move(tail));
    policy.gradient_divide_factor = 1.0;  // the loss is scaled instead
    std::vector<const Parameter*> experts;
    std::vector<std::string> paths;
    collect_experts(model.root, experts, paths);
    for (std::size_t i = 0; i < experts.size(); ++i) {
      if (mesh.world() > experts[i]->shape.front()) {
        policy.shard_dims.emplace_back(exactly(paths[i]), 1);
      }
    }
    return wrapped(std::move(groups));
  }

  FsdpPolicy operator()(const AcceleratePreset& preset) {
    const Landmarks marks = landmarks(model);
    ModuleGroups groups = accelerate_layers(preset, marks);
    const bool tied = marks.embedding && marks.head && has_ties(model);
    std::vector<std::string> tail = present({marks.norm, marks.head});
    if (tied) {
      tail = present({marks.norm, marks.embedding, marks.head});
    } else if (marks.embedding) {
      add(groups, left_to_wrap({*marks.embedding}, groups));
    }
    tail = left_to_wrap(tail, groups);
    policy.reshard_after_forward = preset.reshard_after_forward ? Reshard::free() : Reshard::keep();
    if (!tail.empty()) {
      policy.reshard_units[unit_name(tail)] = Reshard::keep();
    }
    add(groups, std::move(tail));
    return wrapped(std::move(groups));
  }

  FsdpPolicy operator()(const TorchtunePreset& preset) {
    ModuleGroups groups;
    for (const std::string& block : landmarks(model).blocks) {
      add(groups, {block});
    }
    for (const std::string& layer : preset.custom_sharded_layers) {
      const auto named = [&](const Module& child) { return last_component(child.path) == layer; };
      const auto& children = model.root.children;
      const auto found = std::find_if(children.begin(), children.end(), named);
      if (found == children.end()) {
        throw UsageError(fmt::format(
            "policy.torchtune.custom_sharded_layers: the model has no layer '{}'", layer));
      }
      add(groups, left_to_wrap({found->path}, groups));
    }
    policy.root_reshard = false;
    return wrapped(std::move(groups));
  }

  ModuleGroups accelerate_layers(const AcceleratePreset& preset, const Landmarks& marks) const {
    switch (preset.wrap) {
      case AccelerateWrap::none:
        return {};
      case AccelerateWrap::size: {
        // fully_shard refuses lists of modules; `findings` says so.
        ModuleGroups groups = module_groups(model, WrapTotalSize{preset.min_params});
        std::erase_if(groups, [&](const auto& group) {
          return is_container(*find_module(model.root, group.front()));
        });
        return groups;
      }
      case AccelerateWrap::transformer:
        break;
    }
    std::set<std::string> classes(preset.classes.begin(), preset.classes.end());
    for (const std::string& block : marks.blocks) {
      if (preset.classes.empty()) {
        classes.insert(find_module(model.root, block)->class_name);
      }
    }
    if (classes.empty()) {
      throw UsageError(
          "policy.accelerate: no module class of the model ends in Block or Layer; name the "
          "layers' class in fsdp_transformer_layer_cls_to_wrap");
    }
    return module_groups(model, WrapClass{{classes.begin(), classes.end()}});
  }

  /// Those of `paths` whose parameters no group takes already.
  static std::vector<std::string> left_to_wrap(std::vector<std::string> paths,
                                               const ModuleGroups& groups) {
    std::erase_if(paths, [&](const std::string& path) {
      return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
        return std::any_of(group.begin(), group.end(),
                           [&](const std::string& module) { return is_within(path, module); });
      });
    });
    return paths;
  }

  FsdpPolicy wrapped(ModuleGroups groups) {
    policy.wrap = WrapGroups{std::move(groups)};
    return std::move(policy);
  }
};

}  // namespace

FsdpPolicy apply_preset(const ModelSpec& model, const FsdpPolicy& policy, const DeviceMesh& mesh) {
  if (!policy.preset) {
    return policy;
  }
  return std::visit(Applied{model, mesh, policy}, *policy.preset);
}

}  // namespace fsdp
