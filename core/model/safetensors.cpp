#include "core/model/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/model/json_place.hpp"
#include "core/model/model_limits.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

constexpr const char* document_name = "safetensors";
constexpr const char* index_name = "safetensors index";
/// What the format itself allows.
constexpr std::uint64_t most_header_bytes = 100'000'000;

constexpr std::array<std::pair<std::string_view, DType>, 7> saved_dtypes{
    {{"F32", DType::f32},
     {"BF16", DType::bf16},
     {"F16", DType::f16},
     {"F8_E4M3", DType::f8_e4m3},
     {"F8_E5M2", DType::f8_e5m2},
     {"U8", DType::u8},
     {"I64", DType::i64}}};

DType dtype_at(const JsonPlace& place) {
  std::vector<std::string_view> known;
  const std::string written = place.text();
  for (const auto& [text, dtype] : saved_dtypes) {
    if (text == written) {
      return dtype;
    }
    known.push_back(text);
  }
  place.fail(fmt::format("unknown dtype '{}'; known: {}", written, fmt::join(known, ", ")));
}

std::vector<std::int64_t> shape_at(const JsonPlace& place) {
  place.expect_list();
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < place.size(); ++i) {
    shape.push_back(place.at(i).positive());
  }
  if (bounded_numel(shape) > most_elements) {
    place.fail("more than 2^48 elements");
  }
  return shape.empty() ? std::vector<std::int64_t>{1} : shape;
}

/// The tensor's bytes lie inside the file and are as many as its shape needs.
void check_offsets(const JsonPlace& place, const SavedTensor& tensor, std::int64_t data_bytes) {
  place.expect_list();
  if (place.size() != 2) {
    place.fail("must be a list of begin and end");
  }
  const std::int64_t begin = place.at(std::size_t{0}).integer({0, data_bytes});
  const std::int64_t end = place.at(std::size_t{1}).integer({begin, data_bytes});
  const std::int64_t wanted = bounded_numel(tensor.shape) * element_bytes(tensor.dtype);
  if (end - begin != wanted) {
    place.fail(fmt::format("{} bytes, but the shape [{}] of {} needs {}", end - begin,
                           fmt::join(tensor.shape, ", "), to_text(tensor.dtype), wanted));
  }
}

}  // namespace

std::size_t safetensors_header_bytes(std::string_view prefix, std::uint64_t file_bytes) {
  if (prefix.size() < safetensors_prefix_bytes || file_bytes < safetensors_prefix_bytes) {
    throw UsageError(fmt::format("{}: at byte {}: the file ends before the length of its header",
                                 document_name, prefix.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = safetensors_prefix_bytes; i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(prefix[i]);
  }
  if (length > most_header_bytes) {
    throw UsageError(fmt::format(
        "{}: at byte 0: a header of {} bytes is more than the {} the format allows; is it a "
        "safetensors file?",
        document_name, length, most_header_bytes));
  }
  if (length > file_bytes - safetensors_prefix_bytes) {
    throw UsageError(fmt::format(
        "{}: at byte 0: a header of {} bytes does not fit into the file of {}; is it complete?",
        document_name, length, file_bytes));
  }
  return static_cast<std::size_t>(length);
}

std::vector<SavedTensor> read_safetensors_header(std::string_view bytes, std::uint64_t file_bytes) {
  const std::size_t length = safetensors_header_bytes(bytes, file_bytes);
  expects(bytes.size() - safetensors_prefix_bytes >= length, "the whole header is given");
  const nlohmann::json document =
      parse_json(bytes.substr(safetensors_prefix_bytes, length), document_name);
  const JsonPlace root(document, document_name);
  root.expect_object();
  const std::uint64_t data_bytes = file_bytes - safetensors_prefix_bytes - length;
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62U;
  std::vector<SavedTensor> tensors;
  for (const auto& item : document.items()) {
    if (item.key() == "__metadata__") {
      continue;
    }
    const JsonPlace place = root.at(item.key());
    place.expect_keys({.required = {"dtype", "shape", "data_offsets"}, .optional = {}});
    SavedTensor tensor{.name = item.key(),
                       .shape = shape_at(place.at("shape")),
                       .dtype = dtype_at(place.at("dtype"))};
    check_offsets(place.at("data_offsets"), tensor,
                  static_cast<std::int64_t>(std::min(data_bytes, most_bytes)));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::map<std::string, std::string> read_safetensors_index(std::string_view json) {
  const nlohmann::json document = parse_json(json, index_name);
  const JsonPlace root(document, index_name);
  root.expect_keys({.required = {"weight_map"}, .optional = {"metadata"}});
  const JsonPlace weights = root.at("weight_map");
  weights.expect_object();
  std::map<std::string, std::string> files;
  for (const auto& item : weights.value().items()) {
    const JsonPlace place = weights.at(item.key());
    const std::string file = place.text();
    if (file.empty() || file == "." || file == ".." ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      place.fail(fmt::format("'{}' is no name of a file beside the index", file));
    }
    files.emplace(item.key(), file);
  }
  if (files.empty()) {
    weights.fail("names no tensor");
  }
  return files;
}

}  // namespace fsdp
