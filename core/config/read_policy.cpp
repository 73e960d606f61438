#include "core/config/read_policy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/config/read_preset.hpp"
#include "core/config/read_wrap.hpp"
#include "core/model/releases.hpp"

namespace fsdp {
namespace {

constexpr Version default_version{2, 14};

Profile read_profile(const YamlReader& value) {
  if (value.text() == "zero3") {
    value.fail_later("the profile 'zero3'", "supported: fsdp1, fsdp2");
  }
  return value.choice<Profile>({{"fsdp1", Profile::fsdp1}, {"fsdp2", Profile::fsdp2}});
}

Version read_version(const YamlReader& value, Profile profile) {
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
  const Version oldest = oldest_release(profile);
  if (version < oldest || version > newest_release) {
    value.fail(fmt::format("must be between {} and {}, is {}", to_text(oldest),
                           to_text(newest_release), text),
               "the nearest release whose rules are known is " +
                   to_text(version < oldest ? oldest : newest_release));
  }
  return version;
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
    if (policy.reduce_scatter_buffers > 1 && policy.version < since::reduce_scatter_knobs) {
      value->fail(fmt::format("PyTorch {} has one buffer only", to_text(policy.version)),
                  "set version: '2.13' or later");
    }
  }
  if (const auto value = section.find("separate_reduce_scatter_group")) {
    policy.separate_reduce_scatter_group = value->flag();
    if (policy.separate_reduce_scatter_group && policy.version < since::reduce_scatter_knobs) {
      value->fail(fmt::format("PyTorch {} has one group only", to_text(policy.version)),
                  "set version: '2.13' or later");
    }
  }
  if (const auto value = section.find("force_sum_reduction")) {
    policy.force_sum_reduction = value->flag();
  }
  const auto factor = section.find("gradient_divide_factor");
  if (factor && !factor->is_null()) {
    policy.gradient_divide_factor = factor->number();
    if (*policy.gradient_divide_factor <= 0.0) {
      factor->fail("must be above 0");
    }
  }
}

void read_prefetches(const YamlReader& section, FsdpPolicy& policy) {
  const auto prefetch = section.find("prefetch");
  if (!prefetch) {
    return;
  }
  prefetch->expect_map({.known = {"forward", "backward"}, .later = {}});
  if (const auto value = prefetch->find("forward")) {
    policy.forward_prefetch = read_prefetch(*value, forward_depth_range);
  }
  if (const auto value = prefetch->find("backward")) {
    policy.backward_prefetch = read_prefetch(*value, backward_depth_range);
  }
}

/// What only FSDP2's calls and setters know.
void read_fsdp2(const YamlReader& section, const std::optional<DeviceMesh>& mesh,
                FsdpPolicy& policy) {
  read_resharding(section, mesh, policy);
  read_prefetches(section, policy);
  read_reduction(section, policy);
  if (const auto value = section.find("keep_sharded_in_backward")) {
    policy.keep_sharded_in_backward = read_names(*value, "unit");
  }
  if (const auto value = section.find("shard_dims")) {
    for (const auto& [pattern, dim] : value->entries()) {
      policy.shard_dims.emplace_back(pattern, static_cast<int>(dim.integer({0, 7})));
    }
  }
  if (const auto value = section.find("ignored_params")) {
    policy.ignored_params = read_names(*value, "expression");
  }
  if (const auto value = section.find("fp8_gather_classes")) {
    policy.fp8_gather_classes = read_names(*value, "class");
  }
}

/// What only FSDP1's constructor knows.
void read_fsdp1(const YamlReader& section, Fsdp1Arguments& arguments) {
  if (const auto value = section.find("sharding")) {
    arguments.sharding = value->choice<ShardingStrategy>(
        {{"full_shard", ShardingStrategy::full_shard},
         {"shard_grad_op", ShardingStrategy::shard_grad_op},
         {"hybrid_shard", ShardingStrategy::hybrid_shard},
         {"hybrid_shard_zero2", ShardingStrategy::hybrid_shard_zero2}});
  }
  if (const auto value = section.find("backward_prefetch")) {
    arguments.backward_prefetch =
        value->is_null() ? BackwardPrefetch::none
                         : value->choice<BackwardPrefetch>({{"pre", BackwardPrefetch::pre},
                                                            {"post", BackwardPrefetch::post},
                                                            {"none", BackwardPrefetch::none}});
  }
  const auto flag = [&](const char* key, bool& out) {
    if (const auto value = section.find(key)) {
      out = value->flag();
    }
  };
  flag("forward_prefetch", arguments.forward_prefetch);
  flag("limit_all_gathers", arguments.limit_all_gathers);
  flag("use_orig_params", arguments.use_orig_params);
}

const std::vector<std::string>& fsdp1_keys() {
  static const std::vector<std::string> keys{"sharding", "backward_prefetch", "forward_prefetch",
                                             "limit_all_gathers", "use_orig_params"};
  return keys;
}

const std::vector<std::string>& fsdp2_keys() {
  static const std::vector<std::string> keys{"preset",
                                             "torchtitan",
                                             "accelerate",
                                             "torchtune",
                                             "reshard_after_forward",
                                             "root_reshard",
                                             "reshard_units",
                                             "prefetch",
                                             "reduce_scatter_buffers",
                                             "separate_reduce_scatter_group",
                                             "gradient_divide_factor",
                                             "force_sum_reduction",
                                             "keep_sharded_in_backward",
                                             "shard_dims",
                                             "ignored_params",
                                             "fp8_gather_classes"};
  return keys;
}

void refuse_keys(const YamlReader& section, const std::vector<std::string>& keys,
                 const char* profile) {
  for (const std::string& key : keys) {
    if (const auto value = section.find(key);
        value && !(key == "preset" && names_foundry(section))) {
      value->fail(fmt::format("belongs to profile {}", profile),
                  fmt::format("remove it, or set profile: {}", profile));
    }
  }
}

void expect_keys(const YamlReader& section, Profile profile) {
  MapKeys keys{.known = {"profile", "version", "wrap", "param_dtype", "reduce_dtype",
                         "activation_checkpointing", "cpu_offload"},
               .later = {}};
  for (const auto* more : {&fsdp1_keys(), &fsdp2_keys()}) {
    keys.known.insert(keys.known.end(), more->begin(), more->end());
  }
  section.expect_map(keys);
  if (profile == Profile::fsdp1) {
    refuse_keys(section, fsdp2_keys(), "fsdp2");
  } else {
    refuse_keys(section, fsdp1_keys(), "fsdp1");
  }
}

}  // namespace

Reshard read_reshard(const YamlReader& value, const std::optional<DeviceMesh>& mesh) {
  const bool word = value.kind() == YamlReader::Kind::scalar &&
                    (value.text() == "true" || value.text() == "false");
  if (word) {
    return value.flag() ? Reshard::free() : Reshard::keep();
  }
  const int size = static_cast<int>(value.integer({1, 1 << 20}));
  if (mesh && size > mesh->shard) {
    value.fail(
        fmt::format("must not be larger than the shard group of {}, is {}", mesh->shard, size),
        "write true to free the whole parameter, false to keep it");
  }
  if (mesh && mesh->shard % size != 0) {
    value.fail(fmt::format("must divide the shard group of {}, is {}", mesh->shard, size));
  }
  return size == 1 ? Reshard::keep() : Reshard{size};  // a group of one holds the whole parameter
}

FsdpPolicy read_policy(const YamlReader& section, const std::optional<DeviceMesh>& mesh) {
  // The profile comes before the other keys: they depend on it.
  FsdpPolicy policy;
  policy.version = default_version;
  section.entries();  // a section that is no mapping is reported as such
  apply_foundry_preset(section, policy);
  if (const auto value = section.find("profile")) {
    policy.profile = read_profile(*value);
  }
  expect_keys(section, policy.profile);
  if (const auto value = section.find("version")) {
    policy.version = read_version(*value, policy.profile);
  }
  if (const auto value = section.find("wrap")) {
    policy.wrap = read_wrap(*value);
  }
  read_dtypes(section, policy);
  if (const auto value = section.find("activation_checkpointing")) {
    policy.activation_checkpointing =
        value->choice<Checkpointing>({{"none", Checkpointing::none},
                                      {"selective", Checkpointing::selective},
                                      {"full", Checkpointing::full}});
  }
  if (const auto value = section.find("cpu_offload")) {
    policy.cpu_offload = value->flag();
  }
  if (policy.profile == Profile::fsdp1) {
    read_fsdp1(section, policy.fsdp1);
  } else {
    read_fsdp2(section, mesh, policy);
    policy.preset = read_preset(section);
  }
  return policy;
}

}  // namespace fsdp
