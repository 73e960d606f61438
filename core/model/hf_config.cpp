#include "core/model/hf_config.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/model/hf_decoder.hpp"
#include "core/model/hf_fields.hpp"
#include "core/model/model_limits.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

constexpr const char* document_name = "config.json";

using Reader = ModelSpec (*)(const hf::Fields&);

constexpr std::array<std::pair<std::string_view, Reader>, 3> others{
    {{"gpt2", hf::read_gpt2}, {"t5", hf::read_t5}, {"vit", hf::read_vit}}};

ModelSpec read_type(const JsonPlace& root, const hf::Fields& fields) {
  const std::string type = root.at("model_type").text();
  for (const auto& [name, read] : others) {
    if (name == type) {
      return read(fields);
    }
  }
  if (std::optional<ModelSpec> decoder = hf::read_decoder(type, fields)) {
    return std::move(*decoder);
  }
  root.at("model_type")
      .fail(fmt::format("'{}' is not built in; known: {}; for another model dump the module tree "
                        "with configs/models/dump_module_tree.py and name it with {{tree: FILE}}",
                        type, fmt::join(hf_model_types(), ", ")));
}

/// A builder that refuses a combination of dimensions does not know which file they came from.
ModelSpec read_root(const JsonPlace& root) {
  const std::string prefix = fmt::format("{}: ", document_name);
  try {
    return read_type(root, hf::Fields(root));
  } catch (const UsageError& error) {
    const std::string reason = error.what();
    throw UsageError(reason.starts_with(prefix) ? reason : prefix + "/: " + reason);
  }
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names = hf::decoder_types();
  for (const auto& [name, read] : others) {
    names.emplace_back(name);
  }
  return names;
}

ModelSpec read_hf_config(std::string_view json) {
  const nlohmann::json document = parse_json(json, document_name);
  const JsonPlace root(document, document_name);
  root.expect_object();
  ModelSpec model = read_root(root);
  check_limits(model, document_name);
  return model;
}

}  // namespace fsdp
