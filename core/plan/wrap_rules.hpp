// Wrap rules: which modules share one fully_shard call. Each rule gives groups of module paths,
// bottom-up; the root takes what is left.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"

namespace fsdp {

using ModuleGroups = std::vector<std::vector<std::string>>;

/// Groups of `rule` for `model`, without the root's.
/// Throws UsageError when the rule names what the model does not have.
ModuleGroups module_groups(const ModelSpec& model, const WrapRule& rule);

/// Throws UsageError naming `key` when `pattern` is no regular expression (ECMAScript).
std::regex compiled(const std::string& pattern, std::string_view key);

}  // namespace fsdp
