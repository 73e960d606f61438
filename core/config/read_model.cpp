#include "core/config/read_model.hpp"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config/dimensions.hpp"
#include "core/config/files.hpp"
#include "core/config/read_safetensors_files.hpp"
#include "core/model/hf_config.hpp"
#include "core/model/module_tree.hpp"

namespace fsdp {
namespace {

/// Wide enough for every published model; a larger number is a slip of the keyboard.
IntegerRange range_of(const std::string& dimension) {
  if (dimension == "layers" || dimension == "heads" || dimension == "kv_heads") {
    return {1, 1024};
  }
  return {1, std::int64_t{1} << 22};
}

ModelSpec build(const std::string& name, const Gpt2Dimensions& d) { return gpt2(name, d); }
ModelSpec build(const std::string& name, const LlamaDimensions& d) { return llama(name, d); }

template <class Dimensions>
std::vector<std::string> dimension_names() {
  std::vector<std::string> names;
  for (const auto& field : Family<Dimensions>::fields) {
    names.emplace_back(field.name);
  }
  return names;
}

template <class Dimensions>
Dimensions read_dimensions(const YamlReader& map) {
  std::vector<std::string> known{"name", "family", "scale"};
  for (std::string& name : dimension_names<Dimensions>()) {
    known.push_back(std::move(name));
  }
  if constexpr (std::is_same_v<Dimensions, LlamaDimensions>) {
    known.emplace_back("tied");
  }
  map.expect_map({.known = known, .later = {}});
  Dimensions dimensions;
  for (const auto& field : Family<Dimensions>::fields) {
    dimensions.*field.member = map.at(field.name).integer(range_of(field.name));
  }
  if constexpr (std::is_same_v<Dimensions, LlamaDimensions>) {
    if (const auto tied = map.find("tied")) {
      dimensions.tied = tied->flag();
    }
  }
  return dimensions;
}

template <class Dimensions>
Dimensions scale_dimensions(Dimensions dimensions, const std::optional<YamlReader>& scale) {
  if (!scale) {
    return dimensions;
  }
  scale->expect_map({.known = dimension_names<Dimensions>(), .later = {}});
  for (const auto& field : Family<Dimensions>::fields) {
    if (const auto value = scale->find(field.name)) {
      dimensions.*field.member = value->integer(range_of(field.name));
    }
  }
  return dimensions;
}

template <class Dimensions>
std::string scaling_text(const Dimensions& from, const Dimensions& to) {
  std::string text;
  for (const auto& field : Family<Dimensions>::fields) {
    if (from.*field.member != to.*field.member) {
      text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", field.name, from.*field.member,
                          to.*field.member);
    }
  }
  return text;
}

/// Builds the tree; what the family refuses is reported where the dimensions stand.
template <class Dimensions>
ModelSpec build_at(const YamlReader& place, const std::string& name, const Dimensions& dimensions) {
  try {
    return build(name, dimensions);
  } catch (const UsageError& error) {
    place.fail(error.what());
  }
}

template <class Dimensions>
ReadModel read_dimensioned(const YamlReader& map, const std::optional<YamlReader>& scale) {
  const std::string name = map.at("name").text();
  const Dimensions dimensions = read_dimensions<Dimensions>(map);
  const Dimensions scaled = scale_dimensions(dimensions, scale);
  build_at(map, name, dimensions);
  ModelSpec model = build_at(scale ? *scale : map, name, scaled);
  model.scaling = scaling_text(dimensions, scaled);
  return {FamilySource{name, dimensions, scaled}, std::move(model)};
}

enum class FamilyName { gpt2, llama };

ReadModel read_family(const YamlReader& map, const std::optional<YamlReader>& scale) {
  switch (map.at("family").choice<FamilyName>(
      {{"gpt2", FamilyName::gpt2}, {"llama", FamilyName::llama}})) {
    case FamilyName::gpt2:
      return read_dimensioned<Gpt2Dimensions>(map, scale);
    case FamilyName::llama:
      break;
  }
  return read_dimensioned<LlamaDimensions>(map, scale);
}

ReadModel read_model_file(const YamlReader& path, const std::optional<YamlReader>& scale) {
  const TextFile file = read_named_file(path);
  const YamlReader root = YamlReader::parse(file.text, file.path);
  if (root.kind() != YamlReader::Kind::map || !root.entries().empty()) {
    if (const auto own_scale = root.find("scale")) {
      own_scale->fail("a model file states full dimensions", "scale in the run file");
    }
  }
  return read_family(root, scale);
}

/// What a reader of model files refuses is refused at the file, whose document it names itself.
template <class Read>
ModelSpec read_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (const UsageError& error) {
    throw ConfigError({.file = path, .line = 0, .column = 0, .key = ""}, error.what(), "");
  }
}

ReadModel read_tree(const YamlReader& path) {
  const TextFile file = read_named_file(path);
  return {TreeSource{path.text()},
          read_file(file.path, [&file] { return read_module_tree(file.text); })};
}

/// Absent where the run file says nothing.
std::optional<DType> read_dtype(const YamlReader& value) {
  const auto dtype = value.find("dtype");
  return dtype ? std::optional(dtype->dtype({DType::f32, DType::bf16, DType::f16})) : std::nullopt;
}

ReadModel read_hf(const YamlReader& value, const YamlReader& path) {
  value.expect_map({.known = {"hf", "dtype"}, .later = {}});
  const TextFile file = read_named_file(path);
  HfSource source{.path = path.text(), .dtype = read_dtype(value).value_or(DType::f32)};
  ModelSpec model = read_file(file.path, [&file] { return read_hf_config(file.text); });
  set_dtype(model, source.dtype);
  return {std::move(source), std::move(model)};
}

ReadModel read_saved(const YamlReader& value, const YamlReader& path) {
  value.expect_map({.known = {"safetensors", "dtype"}, .later = {}});
  SafetensorsSource source{.path = path.text(), .dtype = read_dtype(value)};
  ModelSpec model = read_safetensors_files(find_named_file(path));
  if (source.dtype) {
    set_dtype(model, *source.dtype);
  }
  return {std::move(source), std::move(model)};
}

}  // namespace

ReadModel read_model(const YamlReader& value) {
  if (value.kind() != YamlReader::Kind::map) {
    return read_model_file(value, std::nullopt);
  }
  if (const auto path = value.find("hf")) {
    return read_hf(value, *path);
  }
  if (const auto path = value.find("safetensors")) {
    return read_saved(value, *path);
  }
  if (const auto tree = value.find("tree")) {
    value.expect_map({.known = {"tree"}, .later = {}});
    return read_tree(*tree);
  }
  if (const auto file = value.find("file")) {
    value.expect_map({.known = {"file", "scale"}, .later = {}});
    return read_model_file(*file, value.find("scale"));
  }
  if (!value.find("family")) {
    value.expect_map(
        {.known = {"file", "scale", "hf", "safetensors", "tree", "family"}, .later = {}});
    value.fail("names no model",
               "write {file: path.yaml}, {hf: config.json}, {safetensors: path}, "
               "{tree: path.json} or {family: ...}");
  }
  return read_family(value, value.find("scale"));
}

}  // namespace fsdp
