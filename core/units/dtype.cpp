#include "core/units/dtype.hpp"

#include <algorithm>
#include <array>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

struct DTypeEntry {
  DType dtype;
  std::string_view text;
  std::int64_t bytes;
};

constexpr std::array<DTypeEntry, 7> dtype_table{{{DType::f32, "f32", 4},
                                                 {DType::bf16, "bf16", 2},
                                                 {DType::f16, "f16", 2},
                                                 {DType::f8_e4m3, "f8_e4m3", 1},
                                                 {DType::f8_e5m2, "f8_e5m2", 1},
                                                 {DType::u8, "u8", 1},
                                                 {DType::i64, "i64", 8}}};

const DTypeEntry& entry_of(DType dtype) {
  const auto* found = std::find_if(dtype_table.begin(), dtype_table.end(),
                                   [dtype](const DTypeEntry& e) { return e.dtype == dtype; });
  expects(found != dtype_table.end(), "a DType outside its enumeration");
  return *found;
}

}  // namespace

std::string_view to_text(DType dtype) { return entry_of(dtype).text; }

std::optional<DType> dtype_from_text(std::string_view text) {
  for (const DTypeEntry& entry : dtype_table) {
    if (entry.text == text) {
      return entry.dtype;
    }
  }
  return std::nullopt;
}

std::vector<std::string_view> dtype_texts() {
  std::vector<std::string_view> texts;
  for (const DTypeEntry& entry : dtype_table) {
    texts.push_back(entry.text);
  }
  return texts;
}

std::int64_t element_bytes(DType dtype) { return entry_of(dtype).bytes; }

}  // namespace fsdp
