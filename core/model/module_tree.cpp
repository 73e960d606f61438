#include "core/model/module_tree.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/model/json_place.hpp"
#include "core/model/model_limits.hpp"

namespace fsdp {
namespace {

// Writing keeps the documented order of keys.
using OrderedJson = nlohmann::ordered_json;

constexpr const char* document_name = "module tree";

std::vector<std::int64_t> shape_at(const JsonPlace& place) {
  std::vector<std::int64_t> shape;
  place.expect_list();
  for (std::size_t i = 0; i < place.size(); ++i) {
    shape.push_back(place.at(i).positive());
  }
  if (shape.empty()) {
    place.fail("is a scalar, which FSDP cannot shard; give it the shape [1]");
  }
  if (bounded_numel(shape) > most_elements) {
    place.fail("more than 2^48 elements");
  }
  return shape;
}

Attention attention_at(const JsonPlace& place) {
  place.expect_keys({.required = {"heads", "head_dim"}, .optional = {}});
  return {.heads = place.at("heads").positive(), .head_dim = place.at("head_dim").positive()};
}

Experts experts_at(const JsonPlace& place) {
  place.expect_keys({.required = {"count", "per_token"}, .optional = {}});
  const std::int64_t count = place.at("count").positive();
  return {.count = count, .per_token = place.at("per_token").integer({1, count})};
}

/// Collects what is known about names while the tree is read, to check what refers to them.
class TreeReader {
 public:
  Module module(const JsonPlace& place, const Module* parent, int depth) {
    if (depth > most_depth) {
      place.fail(fmt::format("nested deeper than {} modules", most_depth));
    }
    place.expect_keys({.required = {"name", "class"},
                       .optional = {"parameters", "children", "attention", "experts"}});
    Module read;
    read.path = place.at("name").text();
    read.class_name = place.at("class").text();
    check_path(place.at("name"), read.path, parent);
    if (place.has("parameters")) {
      const JsonPlace list = place.at("parameters");
      list.expect_list();
      for (std::size_t i = 0; i < list.size(); ++i) {
        read.parameters.push_back(parameter(list.at(i), read.path));
      }
    }
    if (place.has("attention")) {
      read.attention = attention_at(place.at("attention"));
    }
    if (place.has("experts")) {
      read.experts = experts_at(place.at("experts"));
    }
    if (place.has("children")) {
      const JsonPlace list = place.at("children");
      list.expect_list();
      for (std::size_t i = 0; i < list.size(); ++i) {
        read.children.push_back(module(list.at(i), &read, depth + 1));
      }
    }
    return read;
  }

  void check_ties() const {
    for (const auto& [path, tie] : ties_) {
      const auto owner = owners_.find(tie.parameter.tied_to);
      if (owner == owners_.end()) {
        tie.place.fail(
            fmt::format("'{}' is no parameter that owns its storage", tie.parameter.tied_to));
      }
      if (owner->second.shape != tie.parameter.shape ||
          owner->second.dtype != tie.parameter.dtype) {
        tie.place.fail(
            fmt::format("'{}' has another shape or dtype than '{}'", tie.parameter.tied_to, path));
      }
    }
  }

  std::vector<ModuleCall> calls(const JsonPlace& place) const {
    std::vector<ModuleCall> read;
    place.expect_list();
    for (std::size_t i = 0; i < place.size(); ++i) {
      const JsonPlace call = place.at(i);
      call.expect_keys({.required = {"module", "input_requires_grad"}, .optional = {}});
      ModuleCall entry{.module = call.at("module").text(),
                       .input_requires_grad = call.at("input_requires_grad").flag()};
      if (!modules_.contains(entry.module)) {
        call.at("module").fail(fmt::format("the tree has no module '{}'", entry.module));
      }
      read.push_back(std::move(entry));
    }
    if (read.empty() || !read.front().module.empty()) {
      place.fail("must begin with the call of the root, whose module is ''");
    }
    return read;
  }

 private:
  struct Tie {
    Parameter parameter;
    JsonPlace place;
  };

  void check_path(const JsonPlace& place, const std::string& path, const Module* parent) {
    if (parent == nullptr) {
      if (!path.empty()) {
        place.fail(fmt::format("the root's name must be '', is '{}'", path));
      }
    } else if (path == parent->path || !is_within(path, parent->path) || path.empty()) {
      place.fail(fmt::format("'{}' is not below its parent '{}'; names are full paths", path,
                             parent->path));
    }
    if (!modules_.insert(path).second) {
      place.fail(fmt::format("a second module named '{}'", path));
    }
  }

  Parameter parameter(const JsonPlace& place, const std::string& module_path) {
    place.expect_keys(
        {.required = {"name", "shape"}, .optional = {"dtype", "trainable", "tied_to"}});
    Parameter read;
    read.name = place.at("name").text();
    read.shape = shape_at(place.at("shape"));
    if (read.name.empty()) {
      place.at("name").fail("a parameter needs a name");
    }
    if (place.has("dtype")) {
      const std::string text = place.at("dtype").text();
      const std::optional<DType> dtype = dtype_from_text(text);
      if (!dtype) {
        place.at("dtype").fail(
            fmt::format("unknown dtype '{}'; known: {}", text, fmt::join(dtype_texts(), ", ")));
      }
      read.dtype = *dtype;
    }
    if (place.has("trainable")) {
      read.trainable = place.at("trainable").flag();
    }
    const std::string path = join_path(module_path, read.name);
    if (!parameters_.insert(path).second) {
      place.at("name").fail(fmt::format("a second parameter named '{}'", path));
    }
    if (place.has("tied_to")) {
      read.tied_to = place.at("tied_to").text();
      ties_.emplace(path, Tie{read, place.at("tied_to")});
    } else {
      owners_.emplace(path, read);
    }
    return read;
  }

  std::set<std::string> modules_;
  std::set<std::string> parameters_;
  std::map<std::string, Parameter> owners_;
  std::map<std::string, Tie> ties_;
};

OrderedJson written(const Parameter& parameter) {
  OrderedJson json{{"name", parameter.name},
                   {"shape", parameter.shape},
                   {"dtype", to_text(parameter.dtype)},
                   {"trainable", parameter.trainable}};
  if (!parameter.tied_to.empty()) {
    json["tied_to"] = parameter.tied_to;
  }
  return json;
}

OrderedJson written(const Module& module) {
  OrderedJson json{{"name", module.path}, {"class", module.class_name}};
  if (module.attention) {
    json["attention"] = {{"heads", module.attention->heads},
                         {"head_dim", module.attention->head_dim}};
  }
  if (module.experts) {
    json["experts"] = {{"count", module.experts->count}, {"per_token", module.experts->per_token}};
  }
  for (const Parameter& parameter : module.parameters) {
    json["parameters"].push_back(written(parameter));
  }
  for (const Module& child : module.children) {
    json["children"].push_back(written(child));
  }
  return json;
}

}  // namespace

ModelSpec read_module_tree(std::string_view json) {
  const nlohmann::json document = parse_json(json, document_name);
  const JsonPlace place{document, document_name};
  place.expect_keys({.required = {"root", "calls"}, .optional = {"name", "scaling"}});
  TreeReader reader;
  ModelSpec model;
  model.root = reader.module(place.at("root"), nullptr, 0);
  reader.check_ties();
  check_limits(model, document_name);
  model.calls = reader.calls(place.at("calls"));
  model.name = place.has("name") ? place.at("name").text() : model.root.class_name;
  model.scaling = place.has("scaling") ? place.at("scaling").text() : "";
  return model;
}

std::string write_module_tree(const ModelSpec& model) {
  OrderedJson json{{"name", model.name}};
  if (!model.scaling.empty()) {
    json["scaling"] = model.scaling;
  }
  json["root"] = written(model.root);
  json["calls"] = OrderedJson::array();
  for (const ModuleCall& call : model.calls) {
    json["calls"].push_back(
        {{"module", call.module}, {"input_requires_grad", call.input_requires_grad}});
  }
  // Names come from files and may hold any bytes; replacing is better than refusing to write.
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace fsdp
