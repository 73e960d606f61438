// A value of a YAML document that knows its file, place and dotted key, and that is read strictly:
// whatever does not fit is a ConfigError. Hides the YAML library from the rest of the folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/run_config.hpp"
#include "core/units/dtype.hpp"
#include "core/units/parse.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// The keys of a mapping: those that are read, and those that are documented but belong to a later
/// release, which deserve a better answer than "unknown key".
struct MapKeys {
  std::vector<std::string> known;
  std::vector<std::string> later;
};

/// Both ends belong to the range.
struct IntegerRange {
  std::int64_t least;
  std::int64_t most;
};

template <class Enum>
struct Choice {
  const char* text;
  Enum value;
};

class YamlReader {
 public:
  enum class Kind { null, scalar, sequence, map };

  /// The document's root. Throws ConfigError for broken YAML, an empty file, a second document.
  static YamlReader parse(const std::string& text, const std::string& file);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  /// A scalar in quotes is a string even when it looks like a number.
  bool is_quoted() const;
  const std::string& file() const;

  /// Checks that this is a mapping (or empty, which is a mapping without entries) whose keys are
  /// unique and all in `keys`.
  void expect_map(const MapKeys& keys) const;
  /// Absent, or the value (which may be null).
  std::optional<YamlReader> find(const std::string& key) const;
  /// The value; an error when it is absent.
  YamlReader at(const std::string& key) const;
  /// All entries of a mapping with free keys, in file order. Duplicates are errors.
  std::vector<std::pair<std::string, YamlReader>> entries() const;
  bool is_empty_list() const;
  /// The elements of a sequence of at least one.
  std::vector<YamlReader> items() const;

  std::string text() const;
  bool flag() const;
  std::int64_t integer(IntegerRange range) const;
  double number() const;
  DType dtype(std::initializer_list<DType> allowed) const;
  template <class Enum>
  Enum choice(std::initializer_list<Choice<Enum>> choices) const;
  Bytes bytes() const { return quantity(parse_bytes); }
  Nanoseconds duration() const { return quantity(parse_duration); }
  FlopsPerSecond flops_per_second() const { return quantity(parse_flops_per_second); }
  /// A fraction: "2 %" is 0.02.
  double percent() const { return quantity(parse_percent); }

  [[noreturn]] void fail(const std::string& reason, const std::string& suggestion = "") const;
  /// For values that are documented but belong to a later release.
  [[noreturn]] void fail_later(const std::string& what, const std::string& suggestion = "") const;

 private:
  struct Impl;
  explicit YamlReader(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  const std::string& scalar(const char* wanted) const;
  template <class T>
  T quantity(Parsed<T> (*parser)(std::string_view)) const;
  [[noreturn]] void fail_choice(const std::vector<std::string>& choices) const;

  std::shared_ptr<const Impl> impl_;
};

template <class T>
T YamlReader::quantity(Parsed<T> (*parser)(std::string_view)) const {
  const Parsed<T> parsed = parser(scalar("a quantity with its unit"));
  if (!parsed.value) {
    fail(parsed.reason);
  }
  return *parsed.value;
}

template <class Enum>
Enum YamlReader::choice(std::initializer_list<Choice<Enum>> choices) const {
  const std::string& written = scalar("a word");
  std::vector<std::string> words;
  for (const Choice<Enum>& entry : choices) {
    if (written == entry.text) {
      return entry.value;
    }
    words.emplace_back(entry.text);
  }
  fail_choice(words);
}

}  // namespace fsdp
