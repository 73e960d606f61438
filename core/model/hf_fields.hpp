// What the readers of Hugging Face configurations share: keys with defaults and aliases, names of
// activations, and the classes on top of a model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/json_place.hpp"
#include "core/model/model_spec.hpp"

namespace fsdp::hf {

/// No real model has a larger extent, and products of two of them do not overflow.
inline constexpr JsonRange extent_range{1, std::int64_t{1} << 24};
inline constexpr JsonRange layer_range{1, 1024};
inline constexpr JsonRange head_range{1, 1 << 16};

class Fields {
 public:
  explicit Fields(const JsonPlace& root) : root_(root) {}

  const JsonPlace& root() const { return root_; }
  bool has(const char* key) const { return root_.has(key); }
  /// The first of the names that is there and not null. Configurations of one family use several.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names,
                                      JsonRange range) const;
  std::int64_t extent(std::initializer_list<const char*> names, std::int64_t otherwise) const {
    return integer(names, extent_range).value_or(otherwise);
  }
  std::optional<bool> flag(const char* key) const;
  /// The class of torch or transformers that the activation named under `key` is.
  std::string activation(const char* key, std::string_view otherwise) const;
  /// The first of `architectures`; `otherwise` where the file names none.
  std::string architecture(const std::string& otherwise) const;
  /// A class that is not built here. `known` lists those of this model type that are.
  [[noreturn]] void fail_architecture(const std::string& known) const;

 private:
  JsonPlace root_;
};

/// The class of an activation by its name in transformers; fails at `place`.
std::string activation_class(const JsonPlace& place, std::string_view name);

/// Each reads the configuration of one family. Decoders are told by `model_type`.
ModelSpec read_gpt2(const Fields& fields);
ModelSpec read_t5(const Fields& fields);
ModelSpec read_vit(const Fields& fields);

}  // namespace fsdp::hf
