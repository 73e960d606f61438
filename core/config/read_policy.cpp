#include "core/config/read_policy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string_view>

namespace fsdp {
namespace {

constexpr Version oldest_version{2, 8};
constexpr Version newest_version{2, 14};

enum class WrapBy { none, block, titan, always };

Profile read_profile(const YamlReader& value) {
  const std::string profile = value.text();
  if (profile == "fsdp1" || profile == "zero3") {
    value.fail_later(fmt::format("the profile '{}'", profile), "supported: fsdp2");
  }
  return value.choice<Profile>({{"fsdp2", Profile::fsdp2}});
}

Version read_version(const YamlReader& value) {
  const std::string text = value.text();
  const char* end = text.data() + text.size();
  Version version;
  const auto major = std::from_chars(text.data(), end, version.major);
  const bool dotted = major.ec == std::errc{} && major.ptr != end && *major.ptr == '.';
  const auto minor =
      dotted ? std::from_chars(major.ptr + 1, end, version.minor) : std::from_chars_result{};
  if (!dotted || minor.ec != std::errc{} || minor.ptr != end || version.minor < 0) {
    value.fail(fmt::format("must be a PyTorch release, is '{}'", text), "write '2.14'");
  }
  if (version < oldest_version || version > newest_version) {
    value.fail(fmt::format("must be between 2.8 and 2.14, is {}", text),
               "the nearest release whose rules are known is " +
                   to_text(version < oldest_version ? oldest_version : newest_version));
  }
  return version;
}

std::vector<std::string> read_names(const YamlReader& list, const char* what) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const YamlReader& item : list.items()) {
    names.push_back(item.text());
    if (!seen.insert(names.back()).second) {
      item.fail(fmt::format("the {} '{}' is listed twice", what, names.back()));
    }
  }
  return names;
}

WrapRule read_wrap_by(const YamlReader& value) {
  switch (value.choice<WrapBy>({{"none", WrapBy::none},
                                {"block", WrapBy::block},
                                {"titan", WrapBy::titan},
                                {"always", WrapBy::always}})) {
    case WrapBy::none:
      return WrapNone{};
    case WrapBy::block:
      return WrapBlock{};
    case WrapBy::titan:
      return WrapTitan{};
    case WrapBy::always:
      break;
  }
  value.fail_later("wrapping every module", "use 'class' with the classes to wrap");
}

WrapRule read_groups(const YamlReader& list) {
  WrapGroups wrap;
  std::set<std::string> seen;
  for (const YamlReader& group : list.items()) {
    wrap.groups.push_back(read_names(group, "module"));
    for (const std::string& module : wrap.groups.back()) {
      if (!seen.insert(module).second) {
        group.fail(fmt::format("the module '{}' is in two groups", module));
      }
    }
  }
  return wrap;
}

WrapRule read_wrap(const YamlReader& wrap) {
  if (wrap.kind() == YamlReader::Kind::scalar) {
    wrap.fail(fmt::format("must be a mapping, is '{}'", wrap.text()),
              "write {by: block}, {every: 2}, {class: [...]} or {groups: [[...]]}");
  }
  wrap.expect_map({.known = {"by", "every", "class", "groups"}, .later = {"size"}});
  const auto entries = wrap.entries();
  if (entries.size() != 1) {
    wrap.fail(
        fmt::format("must hold exactly one of by, every, class, groups; holds {}", entries.size()));
  }
  const auto& [rule, value] = entries.front();
  if (rule == "by") {
    return read_wrap_by(value);
  }
  if (rule == "every") {
    return WrapEvery{static_cast<int>(value.integer(unit_size_range))};
  }
  if (rule == "class") {
    return WrapClass{read_names(value, "class")};
  }
  return read_groups(value);
}

Prefetch read_prefetch(const YamlReader& value, IntegerRange depth) {
  if (value.kind() != YamlReader::Kind::map) {
    return static_cast<int>(value.integer(depth));
  }
  PrefetchLists lists;
  for (const auto& [unit, names] : value.entries()) {
    lists[unit] = read_names(names, "unit");
  }
  return lists;
}

std::optional<DType> read_dtype(const YamlReader& value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  return value.dtype({DType::f32, DType::bf16, DType::f16});
}

void read_dtypes(const YamlReader& section, FsdpPolicy& policy) {
  if (const auto value = section.find("param_dtype")) {
    policy.param_dtype = read_dtype(*value);
  }
  if (const auto value = section.find("reduce_dtype")) {
    policy.reduce_dtype = read_dtype(*value);
  }
}

void read_resharding(const YamlReader& section, const std::optional<DeviceMesh>& mesh,
                     FsdpPolicy& policy) {
  if (const auto value = section.find("reshard_after_forward")) {
    policy.reshard_after_forward = read_reshard(*value, mesh);
  }
  if (const auto value = section.find("root_reshard")) {
    if (value->kind() != YamlReader::Kind::scalar || value->text() != "auto") {
      policy.root_reshard = value->flag();
    }
  }
  if (const auto units = section.find("reshard_units")) {
    for (const auto& [unit, value] : units->entries()) {
      policy.reshard_units[unit] = read_reshard(value, mesh);
    }
  }
}

void read_reduction(const YamlReader& section, FsdpPolicy& policy) {
  if (const auto value = section.find("reduce_scatter_buffers")) {
    policy.reduce_scatter_buffers = static_cast<int>(value->integer({1, 64}));
    if (policy.reduce_scatter_buffers > 1 && policy.version < Version{2, 13}) {
      value->fail(fmt::format("PyTorch {} has one buffer only", to_text(policy.version)),
                  "set version: '2.13' or later");
    }
  }
  const auto factor = section.find("gradient_divide_factor");
  if (factor && !factor->is_null()) {
    policy.gradient_divide_factor = factor->number();
    if (*policy.gradient_divide_factor <= 0.0) {
      factor->fail("must be above 0");
    }
  }
}

}  // namespace

Reshard read_reshard(const YamlReader& value, const std::optional<DeviceMesh>& mesh) {
  const bool word = value.kind() == YamlReader::Kind::scalar &&
                    (value.text() == "true" || value.text() == "false");
  if (word) {
    return value.flag() ? Reshard::free() : Reshard::keep();
  }
  const int size = static_cast<int>(value.integer({2, 1 << 20}));
  if (mesh && size >= mesh->shard) {
    value.fail(fmt::format("must be smaller than the shard group of {}, is {}", mesh->shard, size),
               "write true to free the whole parameter, false to keep it");
  }
  if (mesh && mesh->shard % size != 0) {
    value.fail(fmt::format("must divide the shard group of {}, is {}", mesh->shard, size));
  }
  return Reshard{size};
}

FsdpPolicy read_policy(const YamlReader& section, const std::optional<DeviceMesh>& mesh) {
  // The profile comes before the other keys: a file for another profile is full of unknown ones.
  FsdpPolicy policy;
  if (const auto value = section.find("profile")) {
    policy.profile = read_profile(*value);
  }
  section.expect_map(
      {.known = {"profile", "version", "wrap", "reshard_after_forward", "root_reshard",
                 "reshard_units", "prefetch", "param_dtype", "reduce_dtype",
                 "reduce_scatter_buffers", "gradient_divide_factor", "activation_checkpointing"},
       .later = {"preset", "torchtitan", "accelerate", "sharding", "backward_prefetch",
                 "forward_prefetch", "use_orig_params", "reshard_after_backward"}});
  if (const auto value = section.find("version")) {
    policy.version = read_version(*value);
  }
  if (const auto value = section.find("wrap")) {
    policy.wrap = read_wrap(*value);
  }
  read_resharding(section, mesh, policy);
  if (const auto prefetch = section.find("prefetch")) {
    prefetch->expect_map({.known = {"forward", "backward"}, .later = {}});
    if (const auto value = prefetch->find("forward")) {
      policy.forward_prefetch = read_prefetch(*value, forward_depth_range);
    }
    if (const auto value = prefetch->find("backward")) {
      policy.backward_prefetch = read_prefetch(*value, backward_depth_range);
    }
  }
  read_dtypes(section, policy);
  read_reduction(section, policy);
  if (const auto value = section.find("activation_checkpointing")) {
    if (value->text() == "full" || value->text() == "selective") {
      value->fail_later(fmt::format("'{}'", value->text()), "supported: none");
    }
    value->choice<int>({{"none", 0}});
  }
  return policy;
}

}  // namespace fsdp
