// A model as lines of text, one a module, parameter and call, so that two are compared line by line
// and the first difference can be read.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/model/model_spec.hpp"

namespace fsdp::testing {

inline void add_module_lines(const Module& module, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("'{}' {}", module.path, module.class_name));
  for (const Parameter& parameter : module.parameters) {
    lines.push_back(fmt::format("  {} {} {}{}{}", parameter.name, parameter.shape,
                                to_text(parameter.dtype), parameter.trainable ? "" : " frozen",
                                parameter.tied_to.empty() ? "" : " = " + parameter.tied_to));
  }
  for (const Module& child : module.children) {
    add_module_lines(child, lines);
  }
}

/// Without `attention` and `experts`, which recorded trees lack.
inline std::vector<std::string> model_lines(const ModelSpec& model) {
  std::vector<std::string> lines;
  add_module_lines(model.root, lines);
  for (const ModuleCall& call : model.calls) {
    lines.push_back(
        fmt::format("call '{}'{}", call.module, call.input_requires_grad ? " requires_grad" : ""));
  }
  return lines;
}

/// Empty where they are the same.
inline std::string first_difference(const ModelSpec& made, const ModelSpec& wanted) {
  const std::vector<std::string> mine = model_lines(made);
  const std::vector<std::string> theirs = model_lines(wanted);
  for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) {
    if (mine[i] != theirs[i]) {
      return fmt::format("line {}: {} instead of {}", i, mine[i], theirs[i]);
    }
  }
  return mine.size() == theirs.size()
             ? ""
             : fmt::format("{} lines instead of {}", mine.size(), theirs.size());
}

}  // namespace fsdp::testing
