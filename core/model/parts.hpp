// The pieces that the builders of model families put together: modules with the class names and
// parameter shapes of torch.nn, and lists of calls.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.hpp"

namespace fsdp::parts {

enum class Bias { no, yes };

/// A list of modules is a value of this type while it is built: moving in is what keeps trees of
/// thousands of modules cheap.
Module leaf(std::string path, std::string class_name, std::vector<Parameter> parameters = {});
Module parent(std::string path, std::string class_name, std::vector<Module> children);

Parameter weight(std::vector<std::int64_t> shape);
/// A Linear, weight (out, in).
struct LinearShape {
  std::int64_t out;
  std::int64_t in;
  Bias bias = Bias::no;
};
Module linear(std::string path, const LinearShape& shape);
/// GPT-2's Conv1D, weight (in, out), always with a bias.
struct Conv1dShape {
  std::int64_t in;
  std::int64_t out;
};
Module conv1d(std::string path, const Conv1dShape& shape);
Module layer_norm(std::string path, std::int64_t width);
/// A norm with a weight only.
Module rms_norm(std::string path, std::string class_name, std::int64_t width);
struct EmbeddingShape {
  std::int64_t rows;
  std::int64_t width;
};
Module embedding(std::string path, const EmbeddingShape& shape);
/// `module` whose weight is the storage of `owner`.
Module tied(Module module, const std::string& owner);

struct NamedDimension {
  std::string_view name;
  std::int64_t value;
};
/// Throws UsageError for a dimension below 1.
void check_positive(std::string_view family, std::initializer_list<NamedDimension> dimensions);
/// Throws UsageError unless `part` divides `whole`.
void check_divides(std::string_view family, NamedDimension whole, NamedDimension part);

/// The calls of one forward, in order.
class CallList {
 public:
  /// Of a module whose inputs are indices, or that runs before any parameter.
  void without_gradient(std::string path) { calls_.push_back({std::move(path), false}); }
  void add(std::string path) { calls_.push_back({std::move(path), true}); }
  /// Modules below `path`.
  void below(const std::string& path, std::initializer_list<const char*> names);
  std::vector<ModuleCall> take() { return std::move(calls_); }

 private:
  std::vector<ModuleCall> calls_;
};

}  // namespace fsdp::parts
