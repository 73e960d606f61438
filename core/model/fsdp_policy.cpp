#include "core/model/fsdp_policy.hpp"

#include <fmt/format.h>

#include <array>

namespace fsdp {
namespace {

struct WrapText {
  std::string operator()(const WrapNone&) const { return "one unit"; }
  std::string operator()(const WrapBlock&) const { return "a unit a block"; }
  std::string operator()(const WrapSubBlock&) const { return "a unit a part of a block"; }
  std::string operator()(const WrapTitan&) const { return "titan"; }
  std::string operator()(const WrapAlways&) const { return "a unit a module"; }
  std::string operator()(const WrapEvery& every) const {
    return every.blocks == 1 ? "a unit a block"
                             : fmt::format("a unit every {} blocks", every.blocks);
  }
  std::string operator()(const WrapPartition& rule) const {
    return fmt::format("blocks {}", fmt::join(rule.blocks, "+"));
  }
  std::string operator()(const WrapName& rule) const {
    return fmt::format("names {}", rule.pattern);
  }
  std::string operator()(const WrapSize& rule) const {
    return fmt::format("size >= {}", rule.min_params);
  }
  std::string operator()(const WrapTotalSize& rule) const {
    return fmt::format("total size > {}", rule.min_params);
  }
  std::string operator()(const WrapClass& rule) const {
    return fmt::format("classes {}", fmt::join(rule.classes, ", "));
  }
  std::string operator()(const WrapGroups& rule) const {
    return fmt::format("{} explicit groups", rule.groups.size());
  }
};

std::string prefetch_text(const Prefetch& prefetch) {
  const int* depth = std::get_if<int>(&prefetch);
  return depth != nullptr ? std::to_string(*depth) : "lists";
}

}  // namespace

std::string to_text(const WrapRule& wrap) { return std::visit(WrapText{}, wrap); }

std::string to_text(Reshard reshard) {
  if (reshard == Reshard::keep()) {
    return "keep";
  }
  return reshard == Reshard::free() ? "reshard" : fmt::format("reshard to {}", reshard.to);
}

std::string to_text(Version version) { return fmt::format("{}.{}", version.major, version.minor); }

std::string_view to_text(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::none:
      return "none";
    case Checkpointing::selective:
      return "selective";
    case Checkpointing::full:
      return "full";
  }
  return {};
}

std::string_view to_text(Profile profile) { return profile == Profile::fsdp1 ? "fsdp1" : "fsdp2"; }

std::string_view to_text(ShardingStrategy sharding) {
  static constexpr std::array<std::string_view, 4> words{"full_shard", "shard_grad_op",
                                                         "hybrid_shard", "hybrid_shard_zero2"};
  return words[static_cast<std::size_t>(sharding)];
}

std::string_view to_text(BackwardPrefetch prefetch) {
  static constexpr std::array<std::string_view, 3> words{"pre", "post", "none"};
  return words[static_cast<std::size_t>(prefetch)];
}

std::string to_text(const FsdpPolicy& policy) {
  if (policy.profile == Profile::fsdp1) {
    return fmt::format("{}, {}, backward prefetch {}{}", to_text(policy.wrap),
                       to_text(policy.fsdp1.sharding), to_text(policy.fsdp1.backward_prefetch),
                       policy.fsdp1.forward_prefetch ? ", forward prefetch" : "");
  }
  return fmt::format(
      "{}, prefetch {}/{}, {}", to_text(policy.wrap), prefetch_text(policy.forward_prefetch),
      prefetch_text(policy.backward_prefetch), to_text(policy.reshard_after_forward));
}

}  // namespace fsdp
