// From dotted names to modules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "core/model/model_limits.hpp"
#include "core/model/parts.hpp"
#include "core/model/safetensors.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

constexpr const char* document_name = "safetensors";

[[noreturn]] void fail(const std::string& name, const std::string& reason) {
  throw UsageError(fmt::format("{}: '{}': {}", document_name, name, reason));
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Numbers by value and before words.
struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const {
    const bool number = is_number(a);
    if (number != is_number(b)) {
      return number;
    }
    const std::string_view x = digits(a);
    const std::string_view y = digits(b);
    if (number && x != y) {
      return x.size() != y.size() ? x.size() < y.size() : x < y;
    }
    return a < b;
  }

 private:
  static std::string_view digits(std::string_view text) {
    const std::size_t first = text.find_first_not_of('0');
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
  }
};

/// A module while its names are still being collected.
struct Node {
  std::vector<Parameter> parameters;
  std::map<std::string, std::unique_ptr<Node>, NaturalLess> children;
};

class NameTree {
 public:
  void add(const SavedTensor& tensor) {
    Node* node = &root_;
    std::string_view rest = tensor.name;
    for (int depth = 0;; ++depth) {
      const std::size_t end = rest.find('.');
      const std::string component(rest.substr(0, end));
      if (component.empty()) {
        fail(tensor.name, "a part of the name is empty");
      }
      if (depth > most_depth) {
        fail(tensor.name, fmt::format("nested deeper than {} modules", most_depth));
      }
      if (end == std::string_view::npos) {
        add_parameter(*node, component, tensor);
        return;
      }
      node = &child(*node, component);
      rest = rest.substr(end + 1);
    }
  }

  const Node& root() const { return root_; }

 private:
  Node& child(Node& node, const std::string& component) {
    std::unique_ptr<Node>& entry = node.children[component];
    if (!entry) {
      if (++modules_ > most_modules) {
        throw UsageError(fmt::format("{}: more than {} modules", document_name, most_modules));
      }
      entry = std::make_unique<Node>();
    }
    return *entry;
  }

  static void add_parameter(Node& node, const std::string& name, const SavedTensor& tensor) {
    const bool trains = tensor.dtype != DType::i64 && tensor.dtype != DType::u8;
    node.parameters.push_back({.name = name,
                               .shape = tensor.shape,
                               .dtype = tensor.dtype,
                               .trainable = trains,
                               .tied_to = {}});
  }

  Node root_;
  std::int64_t modules_ = 0;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_list(const Node& node) {
  return !node.children.empty() && node.parameters.empty() &&
         std::all_of(node.children.begin(), node.children.end(),
                     [](const auto& child) { return is_number(child.first); });
}

bool names_embedding(std::string_view name) {
  constexpr std::array<std::string_view, 4> exact{"wte", "wpe", "shared",
                                                  "relative_attention_bias"};
  return contains(name, "embed") || std::find(exact.begin(), exact.end(), name) != exact.end();
}

/// The class of a module without children, from the weight that it holds.
std::string leaf_class(std::string_view name, const Node& node) {
  const auto weight = std::find_if(node.parameters.begin(), node.parameters.end(),
                                   [](const Parameter& p) { return p.name == "weight"; });
  if (weight == node.parameters.end()) {
    return "Module";
  }
  switch (weight->shape.size()) {
    case 1:
      return "Norm";
    case 2:
      if (names_embedding(name)) {
        return "Embedding";
      }
      // GPT-2 alone saves its weights the other way round, under these names.
      return name.starts_with("c_") || name == "q_attn" ? "Conv1D" : "Linear";
    default:
      return weight->shape.size() == 4 ? "Conv2d" : "Module";
  }
}

/// Weight before bias, as every module of torch registers them.
int registration_rank(const Parameter& parameter) {
  return parameter.name == "weight" ? 0 : parameter.name == "bias" ? 1 : 2;
}

enum class Within { no_list, list };

std::string class_of(std::string_view name, const Node& node, Within within) {
  if (is_list(node)) {
    return "ModuleList";
  }
  if (node.children.empty()) {
    return leaf_class(name, node);
  }
  return within == Within::no_list && is_number(name) ? "Block" : "Module";
}

Module module_of(const std::string& path, const std::string& name, const Node& node,
                 Within within) {
  Module made = parts::leaf(path, class_of(name, node, within), node.parameters);
  std::stable_sort(made.parameters.begin(), made.parameters.end(),
                   [](const Parameter& a, const Parameter& b) {
                     const int x = registration_rank(a);
                     const int y = registration_rank(b);
                     return x != y ? x < y : NaturalLess{}(a.name, b.name);
                   });
  for (std::size_t i = 1; i < made.parameters.size(); ++i) {
    if (made.parameters[i].name == made.parameters[i - 1].name) {
      fail(join_path(path, made.parameters[i].name), "is there twice");
    }
  }
  const Within below = is_number(name) ? Within::list : within;
  made.children.reserve(node.children.size());
  for (const auto& [component, child] : node.children) {
    const std::string child_path = join_path(path, component);
    const auto same = [&component = component](const Parameter& p) { return p.name == component; };
    if (std::any_of(node.parameters.begin(), node.parameters.end(), same)) {
      fail(child_path, "is a tensor and holds others");
    }
    made.children.push_back(module_of(child_path, component, *child, below));
  }
  return made;
}

/// When a module runs among its siblings; equal ones in tree order.
int call_rank(const Module& module, Within within) {
  const bool beside_blocks = within == Within::no_list;
  const std::string_view name = last_component(module.path);
  if (module.class_name == "Embedding" || names_embedding(name)) {
    return 0;
  }
  if (contains(name, "head") || name == "classifier" || name == "score" || name == "output") {
    return beside_blocks || module.children.empty() ? 5 : 2;
  }
  if (beside_blocks && (contains(name, "norm") || name.starts_with("ln"))) {
    return 4;
  }
  return contains(name, "decoder") ? 3 : 2;
}

class CallOrder {
 public:
  void call(const Module& module, Within within) {
    // A list of modules is no module that anyone calls.
    if (module.class_name != "ModuleList") {
      calls_.push_back({.module = module.path, .input_requires_grad = seen_trainable_});
    }
    const auto trains = [](const Parameter& p) { return p.trainable; };
    seen_trainable_ =
        seen_trainable_ || std::any_of(module.parameters.begin(), module.parameters.end(), trains);
    std::vector<const Module*> order;
    for (const Module& child : module.children) {
      order.push_back(&child);
    }
    std::stable_sort(order.begin(), order.end(), [&](const Module* a, const Module* b) {
      return call_rank(*a, within) < call_rank(*b, within);
    });
    const Within below = module.class_name == "ModuleList" ? Within::list : within;
    for (const Module* child : order) {
      call(*child, below);
    }
  }

  std::vector<ModuleCall> take() { return std::move(calls_); }

 private:
  std::vector<ModuleCall> calls_;
  bool seen_trainable_ = false;
};

}  // namespace

ModelSpec read_safetensors(const std::vector<SavedTensor>& tensors) {
  if (tensors.empty()) {
    throw UsageError(fmt::format("{}: holds no tensor", document_name));
  }
  NameTree names;
  for (const SavedTensor& tensor : tensors) {
    names.add(tensor);
  }
  ModelSpec model;
  model.root = module_of("", "", names.root(), Within::no_list);
  // Even where its modules are numbered, the root is called.
  model.root.class_name = "Module";
  model.name = model.root.class_name;
  check_limits(model, document_name);
  CallOrder order;
  order.call(model.root, Within::no_list);
  model.calls = order.take();
  return model;
}

}  // namespace fsdp
