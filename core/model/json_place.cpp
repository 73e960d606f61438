#include "core/model/json_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t most_integer = std::numeric_limits<std::int64_t>::max();

/// No model file nests deeper, and what walks the value afterwards is recursive.
constexpr int most_nesting = 512;

/// RFC 6901: a key's own '~' and '/' are written ~0 and ~1.
std::string escaped(const std::string& key) {
  std::string text;
  for (const char c : key) {
    text += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  }
  return text;
}

/// Names come from the file and may hold anything; a message is one line, and what() ends at a
/// zero.
[[noreturn]] void throw_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == '\x7f'; }, ' ');
  throw UsageError(text);
}

/// Follows the parser through a document to notice what its result no longer shows: keys that an
/// object holds twice, of which the last one wins silently. Knows the JSON pointer of where it is.
class DocumentWatch {
 public:
  explicit DocumentWatch(const char* document) : document_(document) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= most_nesting) {
          fail(fmt::format("nested deeper than {} levels", most_nesting));
        }
        levels_.emplace_back();
        levels_.back().is_list = event == Json::parse_event_t::array_start;
        break;
      case Json::parse_event_t::key:
        levels_.back().key = parsed.get_ref<const std::string&>();
        if (!levels_.back().keys.insert(levels_.back().key).second) {
          fail(fmt::format("the key '{}' stands twice in one object", levels_.back().key));
        }
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        [[fallthrough]];
      case Json::parse_event_t::value:
        if (!levels_.empty()) {
          ++levels_.back().index;
        }
    }
    return true;
  }

 private:
  struct Level {
    bool is_list = false;
    std::size_t index = 0;
    std::string key;
    std::set<std::string> keys;
  };

  [[noreturn]] void fail(const std::string& reason) const {
    // The whole pointer of something nested absurdly deep tells nobody anything.
    constexpr std::size_t most_shown = 16;
    std::string pointer;
    for (std::size_t i = 0; i < std::min(levels_.size(), most_shown); ++i) {
      const Level& level = levels_[i];
      pointer += '/';
      pointer += level.is_list ? std::to_string(level.index) : escaped(level.key);
    }
    throw_line(fmt::format("{}: {}{}: {}", document_, pointer,
                           levels_.size() > most_shown ? "/..." : "", reason));
  }

  const char* document_;
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text, const char* document) {
  DocumentWatch watch(document);
  try {
    return Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const Json::parse_error& error) {
    throw UsageError(
        fmt::format("{}: not JSON: at byte {}: {}", document, error.byte, error.what()));
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("{}: not JSON: {}", document, error.what()));
  }
}

bool JsonPlace::has(const std::string& key) const {
  const auto found = value_->is_object() ? value_->find(key) : value_->end();
  return found != value_->end() && !found->is_null();
}

JsonPlace JsonPlace::at(const std::string& key) const {
  expect_object();
  const auto found = value_->find(key);
  if (found == value_->end()) {
    fail(fmt::format("lacks the key '{}'", key));
  }
  JsonPlace place(*found, document_);
  place.pointer_ = pointer_ + "/" + escaped(key);
  return place;
}

JsonPlace JsonPlace::at(std::size_t index) const {
  expect_list();
  expects(index < value_->size(), "an index inside a JSON list");
  JsonPlace place((*value_)[index], document_);
  place.pointer_ = fmt::format("{}/{}", pointer_, index);
  return place;
}

void JsonPlace::expect_object() const {
  if (!value_->is_object()) {
    fail(fmt::format("must be an object, is {}", value_->type_name()));
  }
}

void JsonPlace::expect_list() const {
  if (!value_->is_array()) {
    fail(fmt::format("must be a list, is {}", value_->type_name()));
  }
}

void JsonPlace::expect_keys(const JsonKeys& keys) const {
  expect_object();
  for (const char* key : keys.required) {
    if (!value_->contains(key)) {
      fail(fmt::format("lacks the key '{}'", key));
    }
  }
  for (const auto& item : value_->items()) {
    const auto matches = [&item](const char* key) { return item.key() == key; };
    if (std::none_of(keys.required.begin(), keys.required.end(), matches) &&
        std::none_of(keys.optional.begin(), keys.optional.end(), matches)) {
      at(item.key())
          .fail(fmt::format("unknown key; known here: {}{}{}", fmt::join(keys.required, ", "),
                            keys.optional.size() == 0 ? "" : ", ", fmt::join(keys.optional, ", ")));
    }
  }
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) {
    fail(fmt::format("must be a string, is {}", value_->type_name()));
  }
  return value_->get<std::string>();
}

bool JsonPlace::flag() const {
  if (!value_->is_boolean()) {
    fail(fmt::format("must be true or false, is {}", value_->type_name()));
  }
  return value_->get<bool>();
}

std::int64_t JsonPlace::integer(JsonRange range) const {
  if (!value_->is_number()) {
    fail(fmt::format("must be a whole number, is {}", value_->type_name()));
  }
  if (!value_->is_number_integer()) {
    fail(fmt::format("must be a whole number, is {}", value_->dump()));
  }
  const bool fits = !value_->is_number_unsigned() ||
                    value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(most_integer);
  if (!fits || value_->get<std::int64_t>() < range.least ||
      value_->get<std::int64_t>() > range.most) {
    fail(range.most == most_integer
             ? fmt::format("must be {} or more, is {}", range.least, value_->dump())
             : fmt::format("must be between {} and {}, is {}", range.least, range.most,
                           value_->dump()));
  }
  return value_->get<std::int64_t>();
}

std::int64_t JsonPlace::positive() const { return integer({1, most_integer}); }

void JsonPlace::fail(const std::string& reason) const {
  throw_line(
      fmt::format("{}: {}: {}", document_, pointer_.empty() ? std::string("/") : pointer_, reason));
}

}  // namespace fsdp
