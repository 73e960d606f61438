#include "core/model/model_limits.hpp"

#include <fmt/format.h>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

class LimitCheck {
 public:
  explicit LimitCheck(const char* document) : document_(document) {}

  void visit(const Module& module, int depth) {
    if (depth > most_depth) {
      fail(fmt::format("'{}' is nested deeper than {} modules", module.path, most_depth));
    }
    if (++modules_ > most_modules) {
      fail(fmt::format("more than {} modules", most_modules));
    }
    for (const Parameter& parameter : module.parameters) {
      const std::int64_t numel = bounded_numel(parameter.shape);
      if (numel > most_elements) {
        fail(fmt::format("'{}' has more than 2^48 elements",
                         join_path(module.path, parameter.name)));
      }
      total_ += numel;
      if (total_ > most_total_elements) {
        fail("more than 2^50 parameters; check the dimensions");
      }
    }
    for (const Module& child : module.children) {
      visit(child, depth + 1);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UsageError(fmt::format("{}: {}", document_, reason));
  }

  const char* document_;
  std::int64_t modules_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace

std::int64_t bounded_numel(const std::vector<std::int64_t>& shape) {
  std::int64_t numel = 1;
  for (const std::int64_t extent : shape) {
    if (extent > most_elements / numel) {
      return most_elements + 1;
    }
    numel *= extent;
  }
  return numel;
}

void check_limits(const ModelSpec& model, const char* document) {
  LimitCheck(document).visit(model.root, 0);
}

}  // namespace fsdp
