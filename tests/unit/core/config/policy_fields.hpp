// A policy as lines of text, one a field, so that two are compared field by field without the
// printer under test.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <variant>
#include <vector>

#include "core/model/fsdp_policy.hpp"

namespace fsdp {

struct WrapFields {
  std::string operator()(const WrapEvery& r) const { return fmt::format("{}", r.blocks); }
  std::string operator()(const WrapPartition& r) const { return fmt::format("{}", r.blocks); }
  std::string operator()(const WrapClass& r) const { return fmt::format("{}", r.classes); }
  std::string operator()(const WrapName& r) const { return r.pattern; }
  std::string operator()(const WrapSize& r) const {
    return fmt::format("{} {} {}", r.min_params, r.force_leaf, r.exclude);
  }
  std::string operator()(const WrapTotalSize& r) const { return fmt::format("{}", r.min_params); }
  std::string operator()(const WrapGroups& r) const { return fmt::format("{}", r.groups); }
  template <class Rule>
  std::string operator()(const Rule&) const {
    return "no arguments";
  }
};

struct PresetFields {
  std::string operator()(const TitanPreset& p) const {
    return fmt::format("{}", static_cast<int>(p.reshard));
  }
  std::string operator()(const AcceleratePreset& p) const {
    return fmt::format("{} {} {} {}", static_cast<int>(p.wrap), p.classes, p.min_params,
                       p.reshard_after_forward);
  }
  std::string operator()(const TorchtunePreset& p) const {
    return fmt::format("{}", p.custom_sharded_layers);
  }
};

inline std::string prefetch_field(const Prefetch& prefetch) {
  const int* depth = std::get_if<int>(&prefetch);
  return depth != nullptr ? fmt::format("depth {}", *depth)
                          : fmt::format("{}", std::get<PrefetchLists>(prefetch));
}

inline std::string dtype_field(const std::optional<DType>& dtype) {
  return dtype ? std::string(to_text(*dtype)) : "unset";
}

inline std::vector<std::string> policy_fields(const FsdpPolicy& p) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, const auto& value) {
    out.push_back(fmt::format("{}: {}", name, value));
  };
  add("profile", static_cast<int>(p.profile));
  add("version", fmt::format("{}.{}", p.version.major, p.version.minor));
  add("preset", p.preset
                    ? fmt::format("{} {}", p.preset->index(), std::visit(PresetFields{}, *p.preset))
                    : "none");
  add("wrap", fmt::format("{} {}", p.wrap.index(), std::visit(WrapFields{}, p.wrap)));
  add("reshard", p.reshard_after_forward.to);
  add("root_reshard", p.root_reshard ? static_cast<int>(*p.root_reshard) : -1);
  for (const auto& [unit, reshard] : p.reshard_units) {
    add("reshard unit", fmt::format("{} {}", unit, reshard.to));
  }
  add("forward", prefetch_field(p.forward_prefetch));
  add("backward", prefetch_field(p.backward_prefetch));
  add("param_dtype", dtype_field(p.param_dtype));
  add("reduce_dtype", dtype_field(p.reduce_dtype));
  add("buffers", p.reduce_scatter_buffers);
  add("separate group", p.separate_reduce_scatter_group);
  add("factor", p.gradient_divide_factor ? fmt::format("{:a}", *p.gradient_divide_factor) : "none");
  add("sum", p.force_sum_reduction);
  add("keep sharded", p.keep_sharded_in_backward);
  add("shard_dims", p.shard_dims);
  add("ignored", p.ignored_params);
  add("fp8", p.fp8_gather_classes);
  add("checkpointing", static_cast<int>(p.activation_checkpointing));
  add("offload", p.cpu_offload);
  const Fsdp1Arguments& f = p.fsdp1;
  add("fsdp1", fmt::format("{} {} {} {} {}", static_cast<int>(f.sharding),
                           static_cast<int>(f.backward_prefetch), f.forward_prefetch,
                           f.limit_all_gathers, f.use_orig_params));
  return out;
}

}  // namespace fsdp
