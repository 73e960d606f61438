#include "core/config/print_policy.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "core/config/yaml_text.hpp"

namespace fsdp {
namespace {

std::string wrap_text(const WrapNone&) { return "{by: none}"; }
std::string wrap_text(const WrapBlock&) { return "{by: block}"; }
std::string wrap_text(const WrapTitan&) { return "{by: titan}"; }
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
  std::string units;
  for (const auto& [unit, reshard] : policy.reshard_units) {
    units += fmt::format("{}{}: {}", units.empty() ? "" : ", ", yaml_string(unit),
                         yaml_reshard(reshard));
  }
  const char* root = !policy.root_reshard ? "auto" : *policy.root_reshard ? "true" : "false";
  std::string text = "policy:\n  profile: fsdp2\n";
  text += fmt::format("  version: '{}.{}'\n", policy.version.major, policy.version.minor);
  text += fmt::format("  wrap: {}\n",
                      std::visit([](const auto& rule) { return wrap_text(rule); }, policy.wrap));
  text += fmt::format("  reshard_after_forward: {}\n", yaml_reshard(policy.reshard_after_forward));
  text += fmt::format("  root_reshard: {}\n", root);
  text += fmt::format("  reshard_units: {{{}}}\n", units);
  text +=
      fmt::format("  prefetch: {{forward: {}, backward: {}}}\n",
                  prefetch_text(policy.forward_prefetch), prefetch_text(policy.backward_prefetch));
  text += fmt::format("  param_dtype: {}\n", dtype_text(policy.param_dtype));
  text += fmt::format("  reduce_dtype: {}\n", dtype_text(policy.reduce_dtype));
  text += fmt::format("  reduce_scatter_buffers: {}\n", policy.reduce_scatter_buffers);
  text += fmt::format(
      "  gradient_divide_factor: {}\n",
      policy.gradient_divide_factor ? fmt::format("{}", *policy.gradient_divide_factor) : "~");
  text += "  activation_checkpointing: none\n";
  return text;
}

}  // namespace fsdp
