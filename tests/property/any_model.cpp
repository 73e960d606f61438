// Random module trees and the calls of one forward over them.
#include <rapidcheck.h>

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "tests/property/generators.hpp"

namespace fsdp::test {
namespace {

constexpr int most_modules = 24;

template <std::size_t N>
std::string one_of(const std::array<std::string_view, N>& names) {
  return std::string(names[static_cast<std::size_t>(any_of(0, N - 1))]);
}

class TreeMaker {
 public:
  explicit TreeMaker(DType dtype) : dtype_(dtype) {}

  Module root() {
    Module root = made("", "Top");
    const int children = any_of(1, 4);
    for (int i = 0; i < children; ++i) {
      root.children.push_back(child(root.path, i, 1));
    }
    if (chance(30)) {  // what presets look for
      root.children.push_back(made("norm", "RMSNorm"));
      root.children.back().parameters = {parameter("weight", 1)};
    }
    if (chance(30)) {
      root.children.push_back(made("lm_head", "Linear"));
      root.children.back().parameters = {parameter("weight", 2)};
    }
    return root;
  }

 private:
  Module made(const std::string& path, const std::string& class_name) {
    ++modules_;
    return {.path = path,
            .class_name = class_name,
            .parameters = {},
            .children = {},
            .attention = {},
            .experts = {}};
  }

  Module child(const std::string& parent, int place, int depth) {
    const std::string path = join_path(parent, std::string(1, static_cast<char>('a' + place)));
    const bool frozen = frozen_;
    frozen_ = frozen_ || chance(8);
    const int kind = any_of(0, 10);
    Module module = depth > 3 || modules_ >= most_modules || kind < 4 ? leaf(path)
                    : kind < 8                                        ? inner(path, depth)
                    : kind < 10                                       ? blocks(path, depth)
                                                                      : attention(path);
    frozen_ = frozen;
    return module;
  }

  Module leaf(const std::string& path) {
    static constexpr std::array<std::string_view, 8> classes{
        "Linear", "Linear", "Linear", "Conv1D", "Embedding", "LayerNorm", "Experts", "Activation"};
    Module module = made(path, one_of(classes));
    if (module.class_name == "LayerNorm") {
      module.parameters = {parameter("weight", 1), parameter("bias", 1)};
    } else if (module.class_name == "Experts") {
      module.parameters = {parameter("w1", 3), parameter("w2", 3)};
    } else if (module.class_name != "Activation") {
      module.parameters = {parameter("weight", 2)};
      if (module.class_name != "Embedding" && chance(40)) {
        module.parameters.push_back(parameter("bias", 1));
      }
    }
    return module;
  }

  Module inner(const std::string& path, int depth) {
    static constexpr std::array<std::string_view, 4> classes{"Body", "MLP", "TestMoE", "TestBlock"};
    Module module = made(path, one_of(classes));
    const int children = any_of(1, 3);
    for (int i = 0; i < children; ++i) {
      module.children.push_back(child(path, i, depth + 1));
    }
    if (chance(20)) {
      module.parameters.push_back(parameter("scale", any_of(1, 3)));
    }
    return module;
  }

  /// Scores and values stand between its projections.
  Module attention(const std::string& path) {
    Module module = made(path, "Attention");
    for (const char* name : {"q_proj", "k_proj", "o_proj"}) {
      module.children.push_back(made(join_path(path, name), "Linear"));
      module.children.back().parameters = {parameter("weight", 2)};
    }
    if (chance(50)) {
      module.attention = Attention{.heads = any_of(1, 2), .head_dim = any_of(1, 4)};
    }
    return module;
  }

  /// A list of blocks, which is not called itself.
  Module blocks(const std::string& path, int depth) {
    Module list = made(path, "ModuleList");
    const int count = any_of(1, 4);
    for (int i = 0; i < count; ++i) {
      Module block = made(path + "." + std::to_string(i), "TestBlock");
      const int children = any_of(1, 3);
      for (int part = 0; part < children; ++part) {
        block.children.push_back(child(block.path, part, depth + 2));
      }
      list.children.push_back(std::move(block));
    }
    return list;
  }

  Parameter parameter(const std::string& name, int dimensions) {
    Parameter out{.name = name,
                  .shape = {},
                  .dtype = dtype_,
                  .trainable = !frozen_ && !chance(4),
                  .tied_to = {}};
    for (int i = 0; i < dimensions; ++i) {
      out.shape.push_back(any_of(1, 9));
    }
    if (!out.trainable && chance(20)) {
      out.dtype = dtype_ == DType::f32 ? DType::bf16 : DType::f32;
    }
    return out;
  }

  DType dtype_;
  bool frozen_ = false;
  int modules_ = 0;
};

/// A parameter and the path of its module.
struct Placed {
  std::string module;
  Parameter* parameter;
};

void collect(Module& module, std::vector<Placed>& out) {
  for (Parameter& parameter : module.parameters) {
    out.push_back({module.path, &parameter});
  }
  for (Module& child : module.children) {
    collect(child, out);
  }
}

/// Makes a parameter another name for an earlier one.
void tie_two(Module& root) {
  std::vector<Placed> all;
  collect(root, all);
  if (all.size() < 2) {
    return;
  }
  const auto later = static_cast<std::size_t>(any_of(1, static_cast<int>(all.size()) - 1));
  const auto first = static_cast<std::size_t>(any_of(0, static_cast<int>(later) - 1));
  Parameter& alias = *all[later].parameter;
  const std::string name = alias.name;
  alias = *all[first].parameter;
  alias.name = name;
  alias.tied_to = join_path(all[first].module, all[first].parameter->name);
}

/// Calls in tree order: each module runs as often in every run of its parent, so that what gets
/// a gradient at all gets it in the first.
class Caller {
 public:
  explicit Caller(std::vector<ModuleCall>& calls) : calls_(calls) {}

  void run(const Module& module) {
    if (module.class_name != "ModuleList") {
      const bool integers = module.class_name == "Embedding";
      calls_.push_back({.module = module.path, .input_requires_grad = flows_ && !integers});
    }
    for (const Module& child : module.children) {
      for (int i = 0; i < runs(child); ++i) {
        run(child);
      }
    }
    for (const Parameter& parameter : module.parameters) {
      flows_ = flows_ || parameter.trainable;
    }
  }

 private:
  int runs(const Module& module) {
    const auto [at, added] = runs_.try_emplace(module.path, 1);
    if (added) {
      at->second = chance(8) ? 2 : chance(4) ? 0 : 1;
    }
    return at->second;
  }

  std::vector<ModuleCall>& calls_;
  std::map<std::string, int> runs_;
  bool flows_ = false;
};

}  // namespace

int any_of(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

bool chance(int percent) { return any_of(0, 99) >= 100 - percent; }

ModelSpec any_model() {
  TreeMaker maker(chance(20) ? DType::bf16 : DType::f32);
  ModelSpec model{.name = "random", .scaling = {}, .root = maker.root(), .calls = {}};
  if (chance(20)) {
    tie_two(model.root);
  }
  Caller(model.calls).run(model.root);
  return model;
}

}  // namespace fsdp::test
