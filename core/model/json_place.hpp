// A JSON value that knows where it stands in its document, so that whatever does not fit is refused
// with the JSON pointer of the value. Shared by the readers of model files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fsdp {

/// Both ends belong to the range.
struct JsonRange {
  std::int64_t least;
  std::int64_t most;
};

struct JsonKeys {
  std::initializer_list<const char*> required;
  std::initializer_list<const char*> optional;
};

/// Objects are std::maps: the ordered kind copies whole subtrees, recursively, while it grows.
/// Throws UsageError "DOCUMENT: not JSON: ..." with the byte of a syntax error, and with a JSON
/// pointer for absurd nesting and for a key that an object holds twice, of which a parser would
/// keep one silently.
nlohmann::json parse_json(std::string_view text, const char* document);

/// A view: the value and the document's name must outlive it.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, const char* document)
      : value_(&value), document_(document) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  std::size_t size() const { return value_->size(); }

  /// Present and not null; false in a value that is no object.
  bool has(const std::string& key) const;
  JsonPlace at(const std::string& key) const;
  JsonPlace at(std::size_t index) const;

  void expect_object() const;
  void expect_list() const;
  /// An object that holds the required keys and none that is not named.
  void expect_keys(const JsonKeys& keys) const;

  std::string text() const;
  bool flag() const;
  std::int64_t integer(JsonRange range) const;
  std::int64_t positive() const;

  [[noreturn]] void fail(const std::string& reason) const;

 private:
  const nlohmann::json* value_;
  const char* document_;
  std::string pointer_;
};

}  // namespace fsdp
