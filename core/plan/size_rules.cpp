#include "core/plan/size_rules.hpp"

#include <algorithm>

namespace fsdp {
namespace {

bool is_one_of(const std::vector<std::string>& classes, const Module& module) {
  return std::find(classes.begin(), classes.end(), module.class_name) != classes.end();
}

class SizeWrap {
 public:
  explicit SizeWrap(const WrapSize& rule) : rule_(rule) {}

  /// Elements below `module` that units took.
  std::int64_t visit(const Module& module) {
    const std::int64_t elements = elements_below(module);
    if (elements < rule_.min_params || is_one_of(rule_.force_leaf, module)) {
      return 0;
    }
    std::int64_t wrapped = 0;
    for (const Module& child : module.children) {
      wrapped += visit(child);
    }
    const bool is_root = module.path.empty();  // which the constructor wraps by itself
    if (!is_root && elements - wrapped >= rule_.min_params && !is_one_of(rule_.exclude, module)) {
      groups_.push_back({module.path});
      return elements;
    }
    return wrapped;
  }

  ModuleGroups take() { return std::move(groups_); }

 private:
  const WrapSize& rule_;
  ModuleGroups groups_;
};

void collect_larger(const Module& module, std::int64_t limit, ModuleGroups& out) {
  for (const Module& child : module.children) {
    collect_larger(child, limit, out);
  }
  if (!module.path.empty() && elements_below(module) > limit) {
    out.push_back({module.path});
  }
}

}  // namespace

ModuleGroups size_groups(const ModelSpec& model, const WrapSize& rule) {
  SizeWrap wrap(rule);
  wrap.visit(model.root);
  return wrap.take();
}

ModuleGroups total_size_groups(const ModelSpec& model, const WrapTotalSize& rule) {
  ModuleGroups out;
  collect_larger(model.root, rule.min_params, out);
  return out;
}

}  // namespace fsdp
