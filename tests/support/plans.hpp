// Plans of models with the sizes of well-known ones, for tests of wrap rules and layouts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/model/families.hpp"
#include "core/plan/wrap_plan.hpp"

namespace fsdp::test {

inline ModelSpec llama3_8b(int layers) {
  return llama("llama3-8b", {.hidden = 4096,
                             .ffn = 14336,
                             .layers = layers,
                             .heads = 32,
                             .kv_heads = 8,
                             .vocab = 128256,
                             .tied = false});
}

inline ModelSpec llama2_7b() {
  return llama("llama2-7b", {.hidden = 4096,
                             .ffn = 11008,
                             .layers = 32,
                             .heads = 32,
                             .kv_heads = 32,
                             .vocab = 32000,
                             .tied = false});
}

inline ModelSpec gpt2_small() { return gpt2("gpt2", {.hidden = 768, .layers = 12, .heads = 12}); }

inline FsdpPolicy policy_with(WrapRule rule, Profile profile = Profile::fsdp2) {
  FsdpPolicy policy;
  policy.profile = profile;
  policy.wrap = std::move(rule);
  return policy;
}

inline WrapPlan plan_of(const ModelSpec& model, const FsdpPolicy& policy, int ranks) {
  return plan_units(model, policy, {.replicate = 1, .shard = ranks},
                    {.sequence = 16, .micro_batch = 2});
}

inline std::vector<std::string> unit_names(const WrapPlan& plan) {
  std::vector<std::string> out;
  for (const FsdpUnit& unit : plan.units) {
    out.push_back(unit.name);
  }
  return out;
}

/// A module tree of plain modules; leaves hold one trainable weight of a shape.
inline Module leaf(const std::string& path, const std::string& class_name,
                   std::vector<std::int64_t> shape) {
  return {.path = path,
          .class_name = class_name,
          .parameters = {{.name = "weight", .shape = std::move(shape), .tied_to = {}}},
          .children = {},
          .attention = {}};
}

inline Module inner(const std::string& path, const std::string& class_name,
                    std::vector<Module> children) {
  return {.path = path,
          .class_name = class_name,
          .parameters = {},
          .children = std::move(children),
          .attention = {}};
}

inline void call_all(const Module& module, std::vector<ModuleCall>& calls) {
  calls.push_back({.module = module.path, .input_requires_grad = true});
  for (const Module& child : module.children) {
    call_all(child, calls);
  }
}

/// The model of a tree, each module called once in tree order.
inline ModelSpec model_of(Module root) {
  ModelSpec model{.name = "tree", .scaling = {}, .root = std::move(root), .calls = {}};
  call_all(model.root, model.calls);
  return model;
}

}  // namespace fsdp::test
