#include "core/model/parts.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/units/error.hpp"

namespace fsdp::parts {
namespace {

Parameter bias(std::int64_t length) { return {.name = "bias", .shape = {length}, .tied_to = {}}; }

}  // namespace

Module leaf(std::string path, std::string class_name, std::vector<Parameter> parameters) {
  return {.path = std::move(path),
          .class_name = std::move(class_name),
          .parameters = std::move(parameters),
          .children = {},
          .attention = {}};
}

Module parent(std::string path, std::string class_name, std::vector<Module> children) {
  return {.path = std::move(path),
          .class_name = std::move(class_name),
          .parameters = {},
          .children = std::move(children),
          .attention = {}};
}

Parameter weight(std::vector<std::int64_t> shape) {
  return {.name = "weight", .shape = std::move(shape), .tied_to = {}};
}

Module linear(std::string path, const LinearShape& shape) {
  Module module = leaf(std::move(path), "Linear", {weight({shape.out, shape.in})});
  if (shape.bias == Bias::yes) {
    module.parameters.push_back(bias(shape.out));
  }
  return module;
}

Module conv1d(std::string path, const Conv1dShape& shape) {
  return leaf(std::move(path), "Conv1D", {weight({shape.in, shape.out}), bias(shape.out)});
}

Module layer_norm(std::string path, std::int64_t width) {
  return leaf(std::move(path), "LayerNorm", {weight({width}), bias(width)});
}

Module rms_norm(std::string path, std::string class_name, std::int64_t width) {
  return leaf(std::move(path), std::move(class_name), {weight({width})});
}

Module embedding(std::string path, const EmbeddingShape& shape) {
  return leaf(std::move(path), "Embedding", {weight({shape.rows, shape.width})});
}

Module tied(Module module, const std::string& owner) {
  module.parameters.at(0).tied_to = owner;
  return module;
}

void check_positive(std::string_view family, std::initializer_list<NamedDimension> dimensions) {
  for (const NamedDimension& dimension : dimensions) {
    if (dimension.value < 1) {
      throw UsageError(fmt::format("{}: {} is {}; it must be at least 1", family, dimension.name,
                                   dimension.value));
    }
  }
}

void check_divides(std::string_view family, NamedDimension whole, NamedDimension part) {
  if (whole.value % part.value != 0) {
    throw UsageError(fmt::format("{}: {} {} is not a multiple of {} {}", family, whole.name,
                                 whole.value, part.name, part.value));
  }
}

void CallList::below(const std::string& path, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    add(join_path(path, name));
  }
}

}  // namespace fsdp::parts
