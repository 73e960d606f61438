// Random wrap rules, policies, meshes and batches for a model.
#include "tests/property/generators.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>

#include "core/config/print_policy.hpp"
#include "core/model/module_tree.hpp"
#include "core/model/releases.hpp"
#include "core/plan/path_patterns.hpp"
#include "core/units/error.hpp"
#include "tests/support/model_trees.hpp"

namespace fsdp::test {
namespace {

template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(any_of(0, static_cast<int>(values.size()) - 1))];
}

/// Modules that a forward calls, children before parents, without the root.
void callable_modules(const Module& module, std::vector<const Module*>& out) {
  for (const Module& child : module.children) {
    callable_modules(child, out);
  }
  if (!module.path.empty() && module.class_name != "ModuleList") {
    out.push_back(&module);
  }
}

void collect_parameters(const Module& module, std::vector<std::pair<std::string, Parameter>>& out) {
  for (const Parameter& parameter : module.parameters) {
    out.emplace_back(join_path(module.path, parameter.name), parameter);
  }
  for (const Module& child : module.children) {
    collect_parameters(child, out);
  }
}

std::vector<std::pair<std::string, Parameter>> parameters_of(const ModelSpec& model) {
  std::vector<std::pair<std::string, Parameter>> out;
  collect_parameters(model.root, out);
  return out;
}

bool related(const std::string& a, const std::string& b) {
  return is_within(a, b) || is_within(b, a);
}

/// Some modules, children before parents; FSDP2 may join neighbours that do not hold each other, as
/// long as no group stands before one with a module inside it.
WrapRule any_groups(const std::vector<const Module*>& modules, Profile profile) {
  WrapGroups rule;
  for (const Module* module : modules) {
    if (!chance(40)) {
      continue;
    }
    const bool joins =
        profile == Profile::fsdp2 && !rule.groups.empty() && chance(35) &&
        std::none_of(rule.groups.back().begin(), rule.groups.back().end(),
                     [&](const std::string& other) { return related(other, module->path); });
    if (joins) {
      rule.groups.back().push_back(module->path);
    } else {
      rule.groups.push_back({module->path});
    }
  }
  return rule;
}

WrapRule any_partition(int blocks) {
  WrapPartition rule;
  for (int left = blocks; left > 0; left -= rule.blocks.back()) {
    rule.blocks.push_back(any_of(1, left));
  }
  return rule;
}

/// `choice` counts from 0 to 11, the alternatives of WrapRule.
WrapRule any_rule(const ModelSpec& model, Profile profile) {
  std::vector<const Module*> modules;
  callable_modules(model.root, modules);
  const int blocks = static_cast<int>(block_paths(model).size());
  const bool joins = profile == Profile::fsdp2;
  const int choice = any_of(0, 15);
  if (blocks > 0) {
    switch (choice) {
      case 0:
        return WrapBlock{};
      case 1:
        return WrapSubBlock{};
      case 2:
        return joins ? WrapRule{WrapTitan{}} : WrapRule{WrapBlock{}};
      case 3:
        return joins ? WrapEvery{any_of(1, 4)} : WrapEvery{1};
      case 4:
        return joins ? any_partition(blocks)
                     : WrapPartition{std::vector<int>(static_cast<std::size_t>(blocks), 1)};
      default:
        break;
    }
  }
  switch (choice) {
    case 5:
      return WrapNone{};
    case 6:
      return WrapAlways{};
    case 7:
      return WrapSize{.min_params = any_of(1, 200)};
    case 8:
      return WrapTotalSize{.min_params = any_of(0, 200)};
    case 9:
    case 10:
      return WrapClass{{one_of(modules)->class_name}};
    case 11:
      return WrapName{exactly(one_of(modules)->path)};
    default:
      return any_groups(modules, profile);
  }
}

std::optional<DType> any_dtype() {
  return one_of<std::optional<DType>>({std::nullopt, DType::bf16, DType::f32, DType::f16});
}

Reshard any_reshard(int ranks) {
  std::vector<Reshard> choices{Reshard::free(), Reshard::keep()};
  for (int group = 2; group <= ranks; ++group) {
    if (ranks % group == 0) {
      choices.push_back({group});
    }
  }
  return one_of(choices);
}

/// Knobs that name parameters or classes.
void draw_parameter_knobs(const ModelSpec& model, const DeviceMesh& mesh, FsdpPolicy& policy) {
  const auto parameters = parameters_of(model);
  for (const auto& [path, parameter] : parameters) {
    const auto& shape = parameter.shape;
    if (shape.size() > 1 && shape[1] % mesh.shard == 0 && parameter.tied_to.empty() && chance(10)) {
      policy.shard_dims.emplace_back(exactly(path), 1);
    }
    if (chance(2)) {
      policy.ignored_params.push_back(exactly(path));
    }
  }
  if (chance(15)) {
    policy.fp8_gather_classes = {"Linear"};
  }
}

void draw_reduction_knobs(const DeviceMesh& mesh, FsdpPolicy& policy) {
  if (policy.version >= since::reduce_scatter_knobs) {
    policy.reduce_scatter_buffers = chance(30) ? any_of(2, 3) : 1;
    policy.separate_reduce_scatter_group = chance(20);
  }
  if (chance(30)) {
    policy.gradient_divide_factor = one_of<double>(
        {1.0, 3.0, static_cast<double>(mesh.shard), static_cast<double>(mesh.world())});
  }
  policy.force_sum_reduction = chance(20);
}

PrefetchLists any_lists(const std::vector<std::string>& units) {
  PrefetchLists lists;
  for (const std::string& unit : units) {
    for (const std::string& target : units) {
      if (target != unit && chance(20)) {
        lists[unit].push_back(target);
      }
    }
  }
  return lists;
}

Preset any_preset(const ModelSpec& model) {
  switch (any_of(0, 2)) {
    case 0:
      return TitanPreset{static_cast<TitanReshard>(any_of(0, 2))};
    case 1:
      return AcceleratePreset{.wrap = static_cast<AccelerateWrap>(any_of(0, 2)),
                              .classes = {},
                              .min_params = any_of(0, 200),
                              .reshard_after_forward = chance(50)};
    default:
      return TorchtunePreset{chance(50)
                                 ? std::vector<std::string>{}
                                 : std::vector<std::string>{one_of(model.root.children).path}};
  }
}

/// Knobs that name units, which the wrap rule decides.
void draw_unit_knobs(RandomPlan& plan) {
  std::vector<std::string> units;
  try {
    for (const FsdpUnit& unit : plan_units(plan.model, plan.policy, plan.mesh, plan.batch).units) {
      units.push_back(unit.name);
    }
  } catch (const UsageError&) {
    return;  // the whole plan is refused, with these knobs or without
  }
  for (const std::string& unit : units) {
    if (unit != "root" && !plan.policy.preset && chance(10)) {
      plan.policy.reshard_units[unit] = any_reshard(plan.mesh.shard);
    }
  }
  plan.policy.forward_prefetch = chance(20) ? Prefetch{any_lists(units)} : Prefetch{any_of(0, 3)};
  plan.policy.backward_prefetch = chance(20) ? Prefetch{any_lists(units)} : Prefetch{any_of(1, 4)};
}

void draw_fsdp1(const ModelSpec& model, DeviceMesh& mesh, FsdpPolicy& policy) {
  policy.version = {2, any_of(1, 15)};
  const auto parameters = parameters_of(model);
  const bool all_train = std::all_of(parameters.begin(), parameters.end(),
                                     [](const auto& p) { return p.second.trainable; });
  policy.fsdp1 = {.sharding = static_cast<ShardingStrategy>(any_of(0, 3)),
                  .backward_prefetch = static_cast<BackwardPrefetch>(any_of(0, 2)),
                  .forward_prefetch = chance(30),
                  .limit_all_gathers = chance(70),
                  .use_orig_params = chance(all_train ? 50 : 90)};
  const bool hybrid = policy.fsdp1.sharding == ShardingStrategy::hybrid_shard ||
                      policy.fsdp1.sharding == ShardingStrategy::hybrid_shard_zero2;
  mesh.replicate = hybrid ? mesh.replicate : 1;
}

Batch any_batch(Profile profile) {
  Batch batch{.sequence = any_of(1, 5), .micro_batch = any_of(1, 2)};
  batch.accumulate = chance(40) ? any_of(2, 3) : 1;
  batch.sync = one_of<GradientSync>({GradientSync::last, GradientSync::every});
  if (profile == Profile::fsdp2) {
    batch.sync = chance(30) ? GradientSync::reduce_scatter : batch.sync;
    batch.reshard_after_backward = !chance(30);
  }
  return batch;
}

RandomPlan drawn(Profile profile) {
  RandomPlan plan{.model = any_model(),
                  .policy = {},
                  .mesh = {.replicate = one_of<int>({1, 1, 2, 3}),
                           .shard = one_of<int>({2, 1, 3, 4, 6, 7, 8, 16})},
                  .batch = any_batch(profile)};
  FsdpPolicy& policy = plan.policy;
  policy.profile = profile;
  policy.param_dtype = any_dtype();
  policy.reduce_dtype = any_dtype();
  policy.activation_checkpointing = static_cast<Checkpointing>(chance(40) ? any_of(1, 2) : 0);
  policy.cpu_offload = chance(15);
  policy.wrap = any_rule(plan.model, profile);
  if (profile == Profile::fsdp1) {
    draw_fsdp1(plan.model, plan.mesh, policy);
    return plan;
  }
  policy.version = {2, any_of(8, 15)};
  policy.reshard_after_forward = any_reshard(plan.mesh.shard);
  if (chance(12)) {
    policy.preset = any_preset(plan.model);
    policy.wrap = WrapBlock{};  // the preset decides
  } else {
    policy.root_reshard = one_of<std::optional<bool>>({std::nullopt, true, false});
  }
  draw_parameter_knobs(plan.model, plan.mesh, policy);
  draw_reduction_knobs(plan.mesh, policy);
  draw_unit_knobs(plan);
  return plan;
}

}  // namespace

RandomPlan any_plan(Profile profile) {
  return *rc::gen::exec([profile] { return drawn(profile); });
}

RandomPlan any_plan() {
  return *rc::gen::exec([] { return drawn(chance(40) ? Profile::fsdp1 : Profile::fsdp2); });
}

std::string to_text(const RandomPlan& plan) {
  static constexpr std::array<const char*, 3> syncs{"last", "every", "reduce_scatter"};
  std::string tree = write_module_tree(plan.model);
  std::erase_if(tree, [](char c) { return c == '\n' || c == ' '; });
  return fmt::format(
      "{}\ntree.json: {}\nmodel: {{tree: tree.json}}\nmesh: {{replicate: {}, shard: {}}}\nbatch: "
      "{{sequence: {}, micro_batch: {}, accumulate: {}, sync: {}, reshard_after_backward: {}}}\n{}",
      fmt::join(testing::model_lines(plan.model), "\n"), tree, plan.mesh.replicate, plan.mesh.shard,
      plan.batch.sequence, plan.batch.micro_batch, plan.batch.accumulate,
      syncs[static_cast<std::size_t>(plan.batch.sync)], plan.batch.reshard_after_backward,
      print_policy(plan.policy));
}

void showValue(const RandomPlan& plan, std::ostream& out) { out << to_text(plan); }

WrapPlan planned(const RandomPlan& plan) {
  try {
    return plan_units(plan.model, plan.policy, plan.mesh, plan.batch);
  } catch (const UsageError& error) {
    RC_DISCARD(error.what());
  }
}

Schedule scheduled(const RandomPlan& plan) {
  const WrapPlan units = planned(plan);
  try {
    return build_schedule(units);
  } catch (const UsageError& error) {
    RC_DISCARD(error.what());
  }
}

}  // namespace fsdp::test
