#include "core/plan/trace.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

class Tracer {
 public:
  Tracer(const ModelSpec& model, const UnitLayout& layout, const Batch& batch)
      : layout_(layout), batch_(batch), waiting_(layout.units.size()), flows_(layout.units.size()) {
    index(model.root);
  }

  void call(const ModuleCall& call) {
    while (!stack_.empty() && (stack_.back().module->path == call.module ||
                               !is_within(call.module, stack_.back().module->path))) {
      leave();
    }
    const auto it = modules_.find(call.module);
    if (it == modules_.end()) {
      throw UsageError(fmt::format("calls: the model has no module '{}'", call.module));
    }
    const Module& module = *it->second;
    stack_.push_back({&module, call.input_requires_grad});
    enter_unit(module.path, call.input_requires_grad);
  }

  std::vector<TraceStep> finish() {
    while (!stack_.empty()) {
      leave();
    }
    return std::move(steps_);
  }

 private:
  struct Active {
    const Module* module;
    bool input_requires_grad;
  };

  void index(const Module& module) {
    modules_.emplace(module.path, &module);
    for (const Module& child : module.children) {
      index(child);
    }
  }

  std::optional<UnitId> unit_named(const std::string& path) const {
    const auto it = layout_.module_units.find(path);
    return it == layout_.module_units.end() ? std::nullopt : std::optional(it->second);
  }

  void enter_unit(const std::string& path, bool input_requires_grad) {
    const auto unit = unit_named(path);
    if (!unit) {
      return;
    }
    auto& waiting = waiting_[unit->index()];
    if (waiting.empty()) {
      const auto& modules = layout_.units[unit->index()].modules;
      waiting.insert(modules.begin(), modules.end());
      flows_[unit->index()] = input_requires_grad;
      steps_.push_back(
          {.kind = TraceStep::Kind::enter, .unit = *unit, .requires_grad = input_requires_grad});
    }
  }

  void exit_unit(const std::string& path) {
    const auto unit = unit_named(path);
    if (!unit) {
      return;
    }
    auto& waiting = waiting_[unit->index()];
    if (waiting.erase(path) > 0 && waiting.empty()) {
      steps_.push_back(
          {.kind = TraceStep::Kind::exit, .unit = *unit, .requires_grad = flows_[unit->index()]});
    }
  }

  void leave() {
    const Active active = stack_.back();
    compute(active);
    stack_.pop_back();
    exit_unit(active.module->path);
  }

  /// Unit that runs `module`: the owner of its parameters, else the innermost unit around it.
  std::optional<UnitId> unit_of(const Module& module) const {
    if (!module.parameters.empty()) {
      return place(module, module.parameters.front()).unit;
    }
    for (auto it = stack_.rbegin(); it != stack_.rend(); ++it) {
      if (const auto unit = unit_named(it->module->path)) {
        return unit;
      }
    }
    return std::nullopt;
  }

  ParameterPlace place(const Module& module, const Parameter& parameter) const {
    return layout_.parameters.at(parameter.tied_to.empty() ? join_path(module.path, parameter.name)
                                                           : parameter.tied_to);
  }

  void compute(const Active& active) {
    const Module& module = *active.module;
    std::vector<Gemm> forward = forward_gemms(module, batch_);
    std::vector<int> gradients;
    bool trainable = false;
    for (const Parameter& parameter : module.parameters) {
      trainable = trainable || parameter.trainable;
      // Autograd adds up all uses of a parameter and delivers the sum after the last of them in
      // backward, which is the first one in forward.
      const ParameterPlace at = place(module, parameter);
      if (parameter.trainable && delivered_.emplace(at.unit, at.index).second) {
        gradients.push_back(at.index);
      }
    }
    const auto unit = unit_of(module);
    if (!unit || (forward.empty() && !trainable)) {
      return;
    }
    if (active.input_requires_grad || trainable) {
      mark_gradient_flow();
    }
    TraceStep& step = compute_step(*unit);
    std::vector<Gemm> backward = backward_gemms(module, batch_, active.input_requires_grad);
    step.forward.insert(step.forward.end(), forward.begin(), forward.end());
    step.backward.insert(step.backward.begin(), backward.begin(), backward.end());
    step.gradients.insert(step.gradients.end(), gradients.begin(), gradients.end());
  }

  /// A gradient reaches the outputs of every unit that is open now.
  void mark_gradient_flow() {
    for (std::size_t unit = 0; unit < waiting_.size(); ++unit) {
      flows_[unit] = flows_[unit] || !waiting_[unit].empty();
    }
  }

  TraceStep& compute_step(UnitId unit) {
    if (steps_.empty() || steps_.back().kind != TraceStep::Kind::compute ||
        steps_.back().unit != unit) {
      steps_.push_back({.kind = TraceStep::Kind::compute, .unit = unit});
    }
    return steps_.back();
  }

  const UnitLayout& layout_;
  Batch batch_;
  std::unordered_map<std::string, const Module*> modules_;
  std::vector<Active> stack_;
  std::vector<std::set<std::string>> waiting_;  // by unit: modules that have yet to run
  std::set<std::pair<UnitId, int>> delivered_;  // parameters whose gradient has its place
  std::vector<bool> flows_;                     // by unit: a gradient reaches its outputs
  std::vector<TraceStep> steps_;
};

}  // namespace

std::vector<TraceStep> trace_forward(const ModelSpec& model, const UnitLayout& layout,
                                     const Batch& batch) {
  Tracer tracer(model, layout, batch);
  for (const ModuleCall& call : model.calls) {
    tracer.call(call);
  }
  return tracer.finish();
}

}  // namespace fsdp
