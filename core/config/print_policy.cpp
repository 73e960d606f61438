#include "core/config/print_policy.hpp"

#include <fmt/format.h>

#include <array>

#include "core/config/yaml_text.hpp"

namespace fsdp {
namespace {

std::string wrap_text(const WrapNone&) { return "{by: none}"; }
std::string wrap_text(const WrapBlock&) { return "{by: block}"; }
std::string wrap_text(const WrapSubBlock&) { return "{by: sub_block}"; }
std::string wrap_text(const WrapTitan&) { return "{by: titan}"; }
std::string wrap_text(const WrapAlways&) { return "{by: always}"; }
std::string wrap_text(const WrapPartition& rule) {
  return fmt::format("{{partition: [{}]}}", fmt::join(rule.blocks, ", "));
}
std::string wrap_text(const WrapName& rule) {
  return fmt::format("{{name: {}}}", yaml_string(rule.pattern));
}
std::string wrap_text(const WrapSize& rule) {
  return fmt::format("{{size: {{min_params: {}, force_leaf: {}, exclude: {}}}}}", rule.min_params,
                     yaml_names(rule.force_leaf), yaml_names(rule.exclude));
}
std::string wrap_text(const WrapTotalSize& rule) {
  return fmt::format("{{total_size: {{min_params: {}}}}}", rule.min_params);
}
std::string wrap_text(const WrapEvery& rule) { return fmt::format("{{every: {}}}", rule.blocks); }
std::string wrap_text(const WrapClass& rule) {
  return fmt::format("{{class: {}}}", yaml_names(rule.classes));
}
std::string wrap_text(const WrapGroups& rule) {
  std::string text;
  for (const auto& group : rule.groups) {
    text += (text.empty() ? "" : ", ") + yaml_names(group);
  }
  return fmt::format("{{groups: [{}]}}", text);
}

std::string prefetch_text(const Prefetch& prefetch) {
  if (const int* depth = std::get_if<int>(&prefetch)) {
    return fmt::format("{}", *depth);
  }
  std::string text;
  for (const auto& [unit, names] : std::get<PrefetchLists>(prefetch)) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", yaml_string(unit), yaml_names(names));
  }
  return "{" + text + "}";
}

std::string dtype_text(const std::optional<DType>& dtype) {
  return dtype ? std::string(to_text(*dtype)) : "~";
}

std::string wrap_line(const FsdpPolicy& policy) {
  return fmt::format("  wrap: {}\n",
                     std::visit([](const auto& rule) { return wrap_text(rule); }, policy.wrap));
}

std::string preset_text(const TitanPreset& preset) {
  static constexpr std::array<const char*, 3> words{"default", "always", "never"};
  return fmt::format("  preset: torchtitan\n  torchtitan: {{fsdp_reshard_after_forward: {}}}\n",
                     words[static_cast<std::size_t>(preset.reshard)]);
}
std::string preset_text(const AcceleratePreset& preset) {
  static constexpr std::array<const char*, 3> words{"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP",
                                                    "NO_WRAP"};
  const std::string classes = preset.classes.empty() ? ""
                                                     : ", fsdp_transformer_layer_cls_to_wrap: " +
                                                           yaml_names(preset.classes);
  return fmt::format(
      "  preset: accelerate\n  accelerate: {{fsdp_auto_wrap_policy: {}{}, fsdp_min_num_params: {}, "
      "fsdp_reshard_after_forward: {}}}\n",
      words[static_cast<std::size_t>(preset.wrap)], classes, preset.min_params,
      preset.reshard_after_forward);
}
std::string preset_text(const TorchtunePreset& preset) {
  const std::string layers = preset.custom_sharded_layers.empty()
                                 ? ""
                                 : fmt::format("  torchtune: {{custom_sharded_layers: {}}}\n",
                                               yaml_names(preset.custom_sharded_layers));
  return "  preset: torchtune\n" + layers;
}

/// Which modules share a unit, and what of them stays after forward.
std::string units_text(const FsdpPolicy& policy) {
  if (policy.preset) {
    return std::visit([](const auto& preset) { return preset_text(preset); }, *policy.preset) +
           fmt::format("  reshard_after_forward: {}\n", yaml_reshard(policy.reshard_after_forward));
  }
  std::string units;
  for (const auto& [unit, reshard] : policy.reshard_units) {
    units += fmt::format("{}{}: {}", units.empty() ? "" : ", ", yaml_string(unit),
                         yaml_reshard(reshard));
  }
  const char* root = !policy.root_reshard ? "auto" : *policy.root_reshard ? "true" : "false";
  return wrap_line(policy) +
         fmt::format("  reshard_after_forward: {}\n  root_reshard: {}\n  reshard_units: {{{}}}\n",
                     yaml_reshard(policy.reshard_after_forward), root, units);
}

std::string fsdp2_text(const FsdpPolicy& policy) {
  std::string text = units_text(policy);
  text +=
      fmt::format("  prefetch: {{forward: {}, backward: {}}}\n",
                  prefetch_text(policy.forward_prefetch), prefetch_text(policy.backward_prefetch));
  text += fmt::format("  reduce_scatter_buffers: {}\n", policy.reduce_scatter_buffers);
  text +=
      fmt::format("  separate_reduce_scatter_group: {}\n", policy.separate_reduce_scatter_group);
  text += fmt::format(
      "  gradient_divide_factor: {}\n",
      policy.gradient_divide_factor ? fmt::format("{}", *policy.gradient_divide_factor) : "~");
  text += fmt::format("  force_sum_reduction: {}\n", policy.force_sum_reduction);
  const auto names = [&](const char* key, const std::vector<std::string>& list) {
    text += list.empty() ? "" : fmt::format("  {}: {}\n", key, yaml_names(list));
  };
  names("keep_sharded_in_backward", policy.keep_sharded_in_backward);
  names("ignored_params", policy.ignored_params);
  names("fp8_gather_classes", policy.fp8_gather_classes);
  std::string dims;
  for (const auto& [pattern, dim] : policy.shard_dims) {
    dims += fmt::format("{}{}: {}", dims.empty() ? "" : ", ", yaml_string(pattern), dim);
  }
  return text + (dims.empty() ? "" : fmt::format("  shard_dims: {{{}}}\n", dims));
}

std::string fsdp1_text(const FsdpPolicy& policy) {
  const Fsdp1Arguments& arguments = policy.fsdp1;
  return wrap_line(policy) + fmt::format(
                                 "  sharding: {}\n  backward_prefetch: {}\n  forward_prefetch: {}\n"
                                 "  limit_all_gathers: {}\n  use_orig_params: {}\n",
                                 to_text(arguments.sharding), to_text(arguments.backward_prefetch),
                                 arguments.forward_prefetch, arguments.limit_all_gathers,
                                 arguments.use_orig_params);
}

}  // namespace

std::string yaml_reshard(Reshard reshard) {
  if (reshard == Reshard::keep()) {
    return "false";
  }
  return reshard == Reshard::free() ? "true" : fmt::format("{}", reshard.to);
}

std::string yaml_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + yaml_string(name);
  }
  return "[" + text + "]";
}

std::string print_policy(const FsdpPolicy& policy) {
  const bool fsdp1 = policy.profile == Profile::fsdp1;
  std::string text = fmt::format("policy:\n  profile: {}\n", to_text(policy.profile));
  text += fmt::format("  version: '{}'\n", to_text(policy.version));
  text += fsdp1 ? fsdp1_text(policy) : fsdp2_text(policy);
  text += fmt::format("  param_dtype: {}\n", dtype_text(policy.param_dtype));
  text += fmt::format("  reduce_dtype: {}\n", dtype_text(policy.reduce_dtype));
  text += fmt::format("  activation_checkpointing: {}\n", to_text(policy.activation_checkpointing));
  text += fmt::format("  cpu_offload: {}\n", policy.cpu_offload);
  return text;
}

}  // namespace fsdp
