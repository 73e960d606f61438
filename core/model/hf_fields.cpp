#include "core/model/hf_fields.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace fsdp::hf {
namespace {

/// Activations without parameters of their own.
constexpr std::array<std::pair<std::string_view, std::string_view>, 21> activations{
    {{"gelu", "GELUActivation"},
     {"gelu_10", "ClippedGELUActivation"},
     {"gelu_fast", "FastGELUActivation"},
     {"gelu_new", "NewGELUActivation"},
     {"gelu_python", "GELUActivation"},
     {"gelu_pytorch_tanh", "GELUTanh"},
     {"gelu_python_tanh", "GELUTanh"},
     {"gelu_accurate", "AccurateGELUActivation"},
     {"hardswish", "Hardswish"},
     {"laplace", "LaplaceActivation"},
     {"leaky_relu", "LeakyReLU"},
     {"linear", "LinearActivation"},
     {"mish", "MishActivation"},
     {"quick_gelu", "QuickGELUActivation"},
     {"relu", "ReLU"},
     {"relu2", "ReLUSquaredActivation"},
     {"relu6", "ReLU6"},
     {"sigmoid", "Sigmoid"},
     {"silu", "SiLUActivation"},
     {"swish", "SiLU"},
     {"tanh", "Tanh"}}};

}  // namespace

std::optional<std::int64_t> Fields::integer(std::initializer_list<const char*> names,
                                            JsonRange range) const {
  for (const char* name : names) {
    if (root_.has(name)) {
      return root_.at(name).integer(range);
    }
  }
  return std::nullopt;
}

std::optional<bool> Fields::flag(const char* key) const {
  return root_.has(key) ? std::optional(root_.at(key).flag()) : std::nullopt;
}

std::string activation_class(const JsonPlace& place, std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [text, class_name] : activations) {
    if (text == name) {
      return std::string(class_name);
    }
    known.push_back(text);
  }
  place.fail(fmt::format("unknown activation '{}'; known: {}", name, fmt::join(known, ", ")));
}

std::string Fields::activation(const char* key, std::string_view otherwise) const {
  if (!root_.has(key)) {
    return activation_class(root_, otherwise);
  }
  return activation_class(root_.at(key), root_.at(key).text());
}

std::string Fields::architecture(const std::string& otherwise) const {
  if (!root_.has("architectures")) {
    return otherwise;
  }
  const JsonPlace list = root_.at("architectures");
  list.expect_list();
  return list.size() == 0 ? otherwise : list.at(std::size_t{0}).text();
}

void Fields::fail_architecture(const std::string& known) const {
  const JsonPlace first = root_.at("architectures").at(std::size_t{0});
  first.fail(
      fmt::format("the class '{}' is not built in; known for this model_type: {}; for "
                  "another dump the module tree with configs/models/dump_module_tree.py "
                  "and name it with {{tree: FILE}}",
                  first.text(), known));
}

}  // namespace fsdp::hf
