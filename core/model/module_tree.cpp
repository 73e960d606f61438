#include "core/model/module_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

// Reading keeps objects in a std::map: the ordered kind copies whole subtrees, recursively, while
// it grows. Writing keeps the documented order of keys.
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Deeper trees than any real model has would exhaust the stack of this recursive reader.
constexpr int depth_limit = 128;

[[noreturn]] void fail(const std::string& pointer, const std::string& reason) {
  throw UsageError(
      fmt::format("module tree: {}: {}", pointer.empty() ? std::string("/") : pointer, reason));
}

/// A JSON value and where it stands, so that every complaint can point at it.
struct Place {
  const Json& value;
  std::string pointer;

  bool has(const char* key) const { return value.contains(key) && !value[key].is_null(); }
  Place operator[](const char* key) const { return {value[key], pointer + "/" + key}; }
  Place operator[](std::size_t index) const {
    return {value[index], fmt::format("{}/{}", pointer, index)};
  }
};

struct Keys {
  std::initializer_list<const char*> required;
  std::initializer_list<const char*> optional;
};

void check_object(const Place& place, const Keys& keys) {
  if (!place.value.is_object()) {
    fail(place.pointer, fmt::format("must be an object, is {}", place.value.type_name()));
  }
  for (const char* key : keys.required) {
    if (!place.value.contains(key)) {
      fail(place.pointer, fmt::format("lacks the key '{}'", key));
    }
  }
  for (const auto& item : place.value.items()) {
    const auto matches = [&item](const char* key) { return item.key() == key; };
    if (std::none_of(keys.required.begin(), keys.required.end(), matches) &&
        std::none_of(keys.optional.begin(), keys.optional.end(), matches)) {
      fail(place.pointer + "/" + item.key(),
           fmt::format("unknown key; known here: {}, {}", fmt::join(keys.required, ", "),
                       fmt::join(keys.optional, ", ")));
    }
  }
}

std::string text_at(const Place& place) {
  if (!place.value.is_string()) {
    fail(place.pointer, fmt::format("must be a string, is {}", place.value.type_name()));
  }
  return place.value.get<std::string>();
}

bool flag_at(const Place& place) {
  if (!place.value.is_boolean()) {
    fail(place.pointer, fmt::format("must be true or false, is {}", place.value.type_name()));
  }
  return place.value.get<bool>();
}

std::int64_t positive_at(const Place& place) {
  if (!place.value.is_number_integer()) {
    fail(place.pointer, fmt::format("must be a whole number, is {}", place.value.dump()));
  }
  const bool fits = !place.value.is_number_unsigned() ||
                    place.value.get<std::uint64_t>() <=
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!fits || place.value.get<std::int64_t>() < 1) {
    fail(place.pointer, fmt::format("must be 1 or more, is {}", place.value.dump()));
  }
  return place.value.get<std::int64_t>();
}

const Place& array_at(const Place& place) {
  if (!place.value.is_array()) {
    fail(place.pointer, fmt::format("must be a list, is {}", place.value.type_name()));
  }
  return place;
}

std::vector<std::int64_t> shape_at(const Place& place) {
  std::vector<std::int64_t> shape;
  std::int64_t numel = 1;
  array_at(place);
  for (std::size_t i = 0; i < place.value.size(); ++i) {
    const std::int64_t extent = positive_at(place[i]);
    // Sums over parameters and byte counts must fit as well, hence far below the type's limit.
    if (extent > (std::int64_t{1} << 48) / numel) {
      fail(place.pointer, "more than 2^48 elements");
    }
    numel *= extent;
    shape.push_back(extent);
  }
  if (shape.empty()) {
    fail(place.pointer, "is a scalar, which FSDP cannot shard; give it the shape [1]");
  }
  return shape;
}

/// Collects what is known about names while the tree is read, to check what refers to them.
class TreeReader {
 public:
  Module module(const Place& place, const Module* parent, int depth) {
    if (depth > depth_limit) {
      fail(place.pointer, fmt::format("nested deeper than {} modules", depth_limit));
    }
    check_object(place, {.required = {"name", "class"},
                         .optional = {"parameters", "children", "attention"}});
    Module read;
    read.path = text_at(place["name"]);
    read.class_name = text_at(place["class"]);
    check_path(place["name"], read.path, parent);
    if (place.has("parameters")) {
      const Place list = place["parameters"];
      array_at(list);
      for (std::size_t i = 0; i < list.value.size(); ++i) {
        read.parameters.push_back(parameter(list[i], read.path));
      }
    }
    if (place.has("attention")) {
      const Place attention = place["attention"];
      check_object(attention, {.required = {"heads", "head_dim"}, .optional = {}});
      read.attention = Attention{.heads = positive_at(attention["heads"]),
                                 .head_dim = positive_at(attention["head_dim"])};
    }
    if (place.has("children")) {
      const Place list = place["children"];
      array_at(list);
      for (std::size_t i = 0; i < list.value.size(); ++i) {
        read.children.push_back(module(list[i], &read, depth + 1));
      }
    }
    return read;
  }

  void check_ties() const {
    for (const auto& [path, tie] : ties_) {
      const auto owner = owners_.find(tie.parameter.tied_to);
      if (owner == owners_.end()) {
        fail(tie.pointer,
             fmt::format("'{}' is no parameter that owns its storage", tie.parameter.tied_to));
      }
      if (owner->second.shape != tie.parameter.shape ||
          owner->second.dtype != tie.parameter.dtype) {
        fail(tie.pointer,
             fmt::format("'{}' has another shape or dtype than '{}'", tie.parameter.tied_to, path));
      }
    }
  }

  std::vector<ModuleCall> calls(const Place& place) const {
    std::vector<ModuleCall> read;
    array_at(place);
    for (std::size_t i = 0; i < place.value.size(); ++i) {
      const Place call = place[i];
      check_object(call, {.required = {"module", "input_requires_grad"}, .optional = {}});
      ModuleCall entry{.module = text_at(call["module"]),
                       .input_requires_grad = flag_at(call["input_requires_grad"])};
      if (!modules_.contains(entry.module)) {
        fail(call["module"].pointer, fmt::format("the tree has no module '{}'", entry.module));
      }
      read.push_back(std::move(entry));
    }
    if (read.empty() || !read.front().module.empty()) {
      fail(place.pointer, "must begin with the call of the root, whose module is ''");
    }
    return read;
  }

 private:
  struct Tie {
    Parameter parameter;
    std::string pointer;
  };

  void check_path(const Place& place, const std::string& path, const Module* parent) {
    if (parent == nullptr) {
      if (!path.empty()) {
        fail(place.pointer, fmt::format("the root's name must be '', is '{}'", path));
      }
    } else if (path == parent->path || !is_within(path, parent->path) || path.empty()) {
      fail(place.pointer, fmt::format("'{}' is not below its parent '{}'; names are full paths",
                                      path, parent->path));
    }
    if (!modules_.insert(path).second) {
      fail(place.pointer, fmt::format("a second module named '{}'", path));
    }
  }

  Parameter parameter(const Place& place, const std::string& module_path) {
    check_object(place,
                 {.required = {"name", "shape"}, .optional = {"dtype", "trainable", "tied_to"}});
    Parameter read;
    read.name = text_at(place["name"]);
    read.shape = shape_at(place["shape"]);
    if (read.name.empty()) {
      fail(place["name"].pointer, "a parameter needs a name");
    }
    if (place.has("dtype")) {
      const std::string text = text_at(place["dtype"]);
      const std::optional<DType> dtype = dtype_from_text(text);
      if (!dtype) {
        fail(place["dtype"].pointer,
             fmt::format("unknown dtype '{}'; known: f32, bf16, f16, u8, i64", text));
      }
      read.dtype = *dtype;
    }
    if (place.has("trainable")) {
      read.trainable = flag_at(place["trainable"]);
    }
    const std::string path = join_path(module_path, read.name);
    if (!parameters_.insert(path).second) {
      fail(place["name"].pointer, fmt::format("a second parameter named '{}'", path));
    }
    if (place.has("tied_to")) {
      read.tied_to = text_at(place["tied_to"]);
      ties_.emplace(path, Tie{read, place["tied_to"].pointer});
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

Json parse(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("module tree: not JSON: {}", error.what()));
  }
}

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
  const Json document = parse(json);
  const Place place{document, ""};
  check_object(place, {.required = {"root", "calls"}, .optional = {"name", "scaling"}});
  TreeReader reader;
  ModelSpec model;
  model.root = reader.module(place["root"], nullptr, 0);
  reader.check_ties();
  model.calls = reader.calls(place["calls"]);
  model.name = place.has("name") ? text_at(place["name"]) : model.root.class_name;
  model.scaling = place.has("scaling") ? text_at(place["scaling"]) : "";
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
