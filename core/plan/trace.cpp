#include "core/plan/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/model/releases.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// True for a module that returns what its last call returned: a stack, an MLP, an attention
/// module, a whole model. Blocks add it to something, mixtures weigh it. The module tree does not
/// say, so the class decides.
bool hands_on_output(const Module& module) {
  if (module.path.empty()) {
    return true;
  }
  static constexpr std::array<std::string_view, 5> others{"Block", "Layer", "Experts", "Moe",
                                                          "MoE"};
  return std::none_of(others.begin(), others.end(), [&](std::string_view part) {
    return module.class_name.find(part) != std::string::npos;
  });
}

class Tracer {
 public:
  Tracer(const ModelSpec& model, const UnitLayout& layout, const Batch& batch,
         const FsdpPolicy& policy)
      : layout_(layout),
        batch_(batch),
        policy_(policy),
        waiting_(layout.units.size()),
        flows_(layout.units.size()),
        entered_(layout.units.size()) {
    index(model.root);
    for (std::string& block : block_paths(model)) {
      blocks_.insert(std::move(block));
    }
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
    const bool integers = module.class_name.find("Embedding") != std::string::npos;
    const bool requires_grad = call.input_requires_grad || (views_flow_ && !integers);
    if (!stack_.empty()) {
      Active& caller = stack_.back();
      caller.last_call = steps_.size();
      caller.first_call = caller.has_calls ? caller.first_call : steps_.size();
      caller.has_calls = true;
      if (is_output_projection(module.path)) {
        caller.projection_call = steps_.size();
      }
    }
    enter_unit(module.path, requires_grad);
    const bool inside = !stack_.empty() && stack_.back().region != Region::none;
    const bool begins = !inside && policy_.activation_checkpointing != Checkpointing::none &&
                        blocks_.contains(module.path);
    stack_.push_back({&module, requires_grad,
                      begins   ? Region::begins
                      : inside ? Region::inside
                               : Region::none});
    if (begins) {
      steps_.push_back({.kind = TraceStep::Kind::checkpoint_begin, .unit = {}});
    }
  }

  std::vector<TraceStep> finish() {
    while (!stack_.empty()) {
      leave();
    }
    return std::move(steps_);
  }

 private:
  /// Blocks are what activation checkpointing repeats; hooks of a unit around one stay outside.
  enum class Region { none, begins, inside };
  struct Active {
    const Module* module;
    bool input_requires_grad;
    Region region;
    bool has_calls = false;
    std::size_t first_call = 0;  ///< where the steps of the first call inside begin
    std::size_t last_call = 0;   ///< where those of the newest begin
    std::optional<std::size_t> projection_call{};  ///< and those of attention's last projection
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
      entered_[unit->index()] = true;
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
      steps_.push_back({.kind = TraceStep::Kind::exit,
                        .unit = *unit,
                        .requires_grad = flows_[unit->index()],
                        .same_output = same_output_});
      same_output_ = true;
    }
  }

  void leave() {
    const Active active = stack_.back();
    const bool hands_on = active.has_calls && hands_on_output(*active.module);
    same_output_ = same_output_ && hands_on;
    compute(active, hands_on);
    stack_.pop_back();
    if (active.region == Region::begins) {
      steps_.push_back({.kind = TraceStep::Kind::checkpoint_end, .unit = {}});
    }
    exit_unit(active.module->path);
    if (stack_.empty()) {
      exit_incomplete();
    }
  }

  /// A unit whose modules did not all run is left right behind the root, the last in module order
  /// first; its hooks hang on the root's output.
  void exit_incomplete() {
    if (policy_.version < since::units_completed) {
      return;
    }
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!waiting_[i].empty() && layout_.units[i].modules.size() > 1) {
        open.push_back(i);
      }
    }
    std::sort(open.begin(), open.end(), [this](std::size_t a, std::size_t b) {
      return layout_.units[a].module_order > layout_.units[b].module_order;
    });
    for (const std::size_t i : open) {
      waiting_[i].clear();
      steps_.push_back({.kind = TraceStep::Kind::exit,
                        .unit = {static_cast<std::int32_t>(i)},
                        .requires_grad = flows_[i],
                        .same_output = same_output_});
      same_output_ = true;
    }
  }

  /// Unit that runs `module`: the owner of its parameters, else the innermost unit around it.
  std::optional<UnitId> unit_of(const Module& module) const {
    for (const Parameter& parameter : module.parameters) {
      if (const auto at = place(module, parameter)) {
        return at->unit;
      }
    }
    for (auto it = stack_.rbegin(); it != stack_.rend(); ++it) {
      if (const auto unit = unit_named(it->module->path)) {
        return unit;
      }
    }
    return last_unit_below(module);
  }

  /// Where no unit is around a module, what it computes counts with the unit that runs last in it.
  std::optional<UnitId> last_unit_below(const Module& module) const {
    for (auto child = module.children.rbegin(); child != module.children.rend(); ++child) {
      if (const auto unit = unit_named(child->path)) {
        return unit;
      }
      if (const auto unit = last_unit_below(*child)) {
        return unit;
      }
    }
    return std::nullopt;
  }

  /// Nothing for a parameter that the policy leaves out.
  std::optional<ParameterPlace> place(const Module& module, const Parameter& parameter) const {
    const auto it = layout_.parameters.find(join_path(module.path, parameter.name));
    return it == layout_.parameters.end() ? std::nullopt : std::optional(it->second);
  }

  /// Whether any parameter of `module` stands in `unit`; those that the policy leaves out do not.
  bool holds_parameters(UnitId unit, const Module& module) const {
    return std::any_of(module.parameters.begin(), module.parameters.end(),
                       [&](const Parameter& parameter) {
                         const auto held = place(module, parameter);
                         return held && held->unit == unit;
                       });
  }

  /// Products and gradients of a module's own parameters. Of a module that returns what its last
  /// call returned, products stand before that call (scores and values before the projection), and
  /// parameters without products before the first one (position embeddings before the blocks).
  void compute(const Active& active, bool hands_on) {
    const Module& module = *active.module;
    std::vector<Gemm> forward = forward_gemms(module, batch_);
    const std::size_t at = active.projection_call ? *active.projection_call
                           : !hands_on            ? steps_.size()
                           : forward.empty()      ? active.first_call
                                                  : active.last_call;
    std::map<UnitId, std::vector<int>> gradients;
    bool trainable = false;
    for (const Parameter& parameter : module.parameters) {
      // Autograd adds up all uses of a parameter and delivers the sum after the last of them in
      // backward, which is the first one in forward.
      const auto held = place(module, parameter);
      if (held) {
        refuse_unentered(module, parameter, held->unit);
      }
      if (!held || !unit_parameter(*held).trainable) {
        trainable = trainable || (!held && parameter.trainable);
        continue;
      }
      trainable = true;
      views_flow_ = views_flow_ || !parameter.trainable;
      if (delivered_.emplace(held->unit, held->index).second) {
        gradients[held->unit].push_back(held->index);
      }
    }
    const auto unit = unit_of(module);
    if (!unit || (forward.empty() && !trainable)) {
      return;
    }
    if (active.input_requires_grad || trainable) {
      mark_gradient_flow();
    }
    TraceStep& step = compute_step(*unit, at);
    step.reads_parameters = step.reads_parameters || holds_parameters(*unit, module);
    step.requires_grad = step.requires_grad || active.input_requires_grad || trainable;
    std::vector<Gemm> backward = backward_gemms(module, batch_, active.input_requires_grad);
    step.forward.insert(step.forward.end(), forward.begin(), forward.end());
    step.backward.insert(step.backward.begin(), backward.begin(), backward.end());
    if (active.region != Region::none) {
      const std::vector<Gemm> repeated = policy_.activation_checkpointing == Checkpointing::full
                                             ? forward
                                             : attention_gemms(module, batch_);
      step.recompute.insert(step.recompute.end(), repeated.begin(), repeated.end());
    }
    for (const auto& [owner, indices] : gradients) {
      TraceStep& holder = compute_step(owner, at);
      holder.requires_grad = holder.reads_parameters = true;
      holder.gradients.insert(holder.gradients.end(), indices.begin(), indices.end());
    }
  }

  /// What a unit holds is still a shard until the unit runs: a tied weight whose other user comes
  /// first, a list of modules, which never runs itself. Views of an FSDP1 parameter on one rank are
  /// whole.
  void refuse_unentered(const Module& module, const Parameter& parameter, UnitId unit) const {
    const FsdpUnit& holder = layout_.units[unit.index()];
    const bool view = policy_.profile == Profile::fsdp1 && policy_.fsdp1.use_orig_params &&
                      holder.shard_numel == holder.padded_numel;
    if (!entered_[unit.index()] && !view) {
      throw UsageError(fmt::format(
          "policy.wrap: '{}' is used before its unit '{}' runs and is still sharded then (PyTorch "
          "fails as well); wrap modules that run, and those that share a weight in one unit",
          join_path(module.path, parameter.name), holder.name));
    }
  }

  const UnitParameter& unit_parameter(const ParameterPlace& at) const {
    return layout_.units[at.unit.index()].parameters[static_cast<std::size_t>(at.index)];
  }

  /// A gradient reaches the outputs of every unit that is open now.
  void mark_gradient_flow() {
    for (std::size_t unit = 0; unit < waiting_.size(); ++unit) {
      flows_[unit] = flows_[unit] || !waiting_[unit].empty();
    }
  }

  /// The compute step of `unit` that ends at place `at`, a new one if another step stands there.
  TraceStep& compute_step(UnitId unit, std::size_t at) {
    if (at == 0 || steps_[at - 1].kind != TraceStep::Kind::compute || steps_[at - 1].unit != unit) {
      return *steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(at),
                            {.kind = TraceStep::Kind::compute, .unit = unit});
    }
    return steps_[at - 1];
  }

  const UnitLayout& layout_;
  Batch batch_;
  const FsdpPolicy& policy_;
  std::unordered_map<std::string, const Module*> modules_;
  std::unordered_set<std::string> blocks_;
  std::vector<Active> stack_;
  std::vector<std::set<std::string>> waiting_;  // by unit: modules that have yet to run
  std::set<std::pair<UnitId, int>> delivered_;  // parameters whose gradient has its place
  std::vector<bool> flows_;                     // by unit: a gradient reaches its outputs
  std::vector<bool> entered_;                   // by unit
  std::vector<TraceStep> steps_;
  /// A frozen parameter gets a gradient (see ParameterLayout), so that what runs behind it does
  /// too.
  bool views_flow_ = false;
  bool same_output_ = false;  // what was returned last is what the unit left last had returned
};

}  // namespace

std::vector<TraceStep> trace_forward(const ModelSpec& model, const UnitLayout& layout,
                                     const Batch& batch, const FsdpPolicy& policy) {
  Tracer tracer(model, layout, batch, policy);
  for (const ModuleCall& call : model.calls) {
    tracer.call(call);
  }
  return tracer.finish();
}

}  // namespace fsdp
