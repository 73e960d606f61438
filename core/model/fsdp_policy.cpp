#include "core/model/fsdp_policy.hpp"

#include <fmt/format.h>

namespace fsdp {
namespace {

struct WrapText {
  std::string operator()(const WrapNone&) const { return "one unit"; }
  std::string operator()(const WrapBlock&) const { return "a unit a block"; }
  std::string operator()(const WrapTitan&) const { return "titan"; }
  std::string operator()(const WrapEvery& every) const {
    return every.blocks == 1 ? "a unit a block"
                             : fmt::format("a unit every {} blocks", every.blocks);
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

std::string to_text(const FsdpPolicy& policy) {
  return fmt::format(
      "{}, prefetch {}/{}, {}", to_text(policy.wrap), prefetch_text(policy.forward_prefetch),
      prefetch_text(policy.backward_prefetch), to_text(policy.reshard_after_forward));
}

}  // namespace fsdp
