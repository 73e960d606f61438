#include "core/config/yaml_reader.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/config/edit_distance.hpp"

namespace fsdp {

struct YamlReader::Impl {
  YAML::Node node;
  YAML::Mark mark;  ///< the value's, or its key's where the value is empty and has none
  std::string key;  ///< dotted, from the root
  std::shared_ptr<const std::string> file;
};

namespace {

ConfigError::Place place_of(const YAML::Mark& mark, const std::string& file,
                            const std::string& key) {
  if (mark.is_null()) {
    return {.file = file, .line = 0, .column = 0, .key = key};
  }
  return {.file = file, .line = mark.line + 1, .column = mark.column + 1, .key = key};
}

std::string below(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

std::string_view name_of(YamlReader::Kind kind) {
  switch (kind) {
    case YamlReader::Kind::null:
      return "empty";
    case YamlReader::Kind::scalar:
      return "a single value";
    case YamlReader::Kind::sequence:
      return "a list";
    case YamlReader::Kind::map:
      return "a mapping";
  }
  return "unreadable";
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Notes where the last document began and builds nothing.
class DocumentStart : public YAML::EventHandler {
 public:
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  YAML::Mark mark_ = YAML::Mark::null_mark();
};

/// Refuses a second document. The library's LoadAll cannot be used for it: after a stray ',' or ']'
/// it finds empty documents without end.
void expect_one_document(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) {
    return;
  }
  const auto position = static_cast<std::size_t>(start.mark().pos);
  if (position < text.size() && text.compare(position, 3, "---") == 0) {
    throw ConfigError(place_of(start.mark(), file, ""), "a second document; only one is read",
                      "remove the '---' line");
  }
  throw ConfigError(place_of(start.mark(), file, ""), "not valid YAML: unexpected text", "");
}

}  // namespace

YamlReader YamlReader::parse(const std::string& text, const std::string& file) {
  const auto shared_file = std::make_shared<const std::string>(file);
  try {
    expect_one_document(text, file);
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) {
      throw ConfigError({.file = file, .line = 1, .column = 1, .key = ""}, "the file is empty", "");
    }
    return YamlReader(std::make_shared<const Impl>(Impl{root, root.Mark(), "", shared_file}));
  } catch (const YAML::DeepRecursion& error) {
    throw ConfigError(place_of(error.mark, file, ""), "nested too deeply to be a configuration",
                      "");
  } catch (const YAML::Exception& error) {
    throw ConfigError(place_of(error.mark, file, ""), "not valid YAML: " + error.msg, "");
  }
}

YamlReader::Kind YamlReader::kind() const {
  switch (impl_->node.Type()) {
    case YAML::NodeType::Scalar:
      return Kind::scalar;
    case YAML::NodeType::Sequence:
      return Kind::sequence;
    case YAML::NodeType::Map:
      return Kind::map;
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return Kind::null;
}

bool YamlReader::is_quoted() const { return impl_->node.Tag() == "!"; }

const std::string& YamlReader::file() const { return *impl_->file; }

std::vector<std::pair<std::string, YamlReader>> YamlReader::entries() const {
  if (kind() != Kind::map) {
    if (is_null()) {
      return {};
    }
    fail(fmt::format("must be a mapping, is {}", name_of(kind())));
  }
  std::vector<std::pair<std::string, YamlReader>> read;
  std::set<std::string> seen;
  // The library keeps the first of two equal keys when asked by name, so equality is looked for
  // here.
  for (const auto& entry : impl_->node) {
    const YAML::Node& key_node = entry.first;
    if (!key_node.IsScalar()) {
      throw ConfigError(place_of(key_node.Mark(), file(), impl_->key), "a key must be one word",
                        "");
    }
    const std::string& key = key_node.Scalar();
    const std::string dotted = below(impl_->key, key);
    if (!seen.insert(key).second) {
      throw ConfigError(place_of(key_node.Mark(), file(), dotted), "duplicate key",
                        "keep one of them");
    }
    const YAML::Mark mark = entry.second.IsNull() ? key_node.Mark() : entry.second.Mark();
    read.emplace_back(
        key,
        YamlReader(std::make_shared<const Impl>(Impl{entry.second, mark, dotted, impl_->file})));
  }
  return read;
}

void YamlReader::expect_map(const MapKeys& keys) const {
  entries();
  for (const auto& entry : impl_->node) {
    const std::string& key = entry.first.Scalar();
    const auto place = [&] { return place_of(entry.first.Mark(), file(), below(impl_->key, key)); };
    if (contains(keys.later, key)) {
      throw ConfigError(place(), "not supported by this release", "remove it");
    }
    if (!contains(keys.known, key)) {
      throw ConfigError(place(), "unknown key", suggest(key, keys.known));
    }
  }
}

std::optional<YamlReader> YamlReader::find(const std::string& key) const {
  for (auto& [name, value] : entries()) {
    if (name == key) {
      return std::move(value);
    }
  }
  return std::nullopt;
}

YamlReader YamlReader::at(const std::string& key) const {
  std::optional<YamlReader> value = find(key);
  if (!value) {
    throw ConfigError(place_of(impl_->mark, file(), below(impl_->key, key)),
                      "is missing and has no default", fmt::format("add '{}: ...'", key));
  }
  return std::move(*value);
}

bool YamlReader::is_empty_list() const {
  return kind() == Kind::sequence && impl_->node.size() == 0;
}

std::vector<YamlReader> YamlReader::items() const {
  if (kind() != Kind::sequence) {
    fail(fmt::format("must be a list, is {}", name_of(kind())), "write [a, b, ...]");
  }
  if (impl_->node.size() == 0) {
    fail("must not be an empty list");
  }
  std::vector<YamlReader> read;
  for (const auto& item : impl_->node) {
    const YAML::Mark mark = item.IsNull() ? impl_->mark : item.Mark();
    read.push_back(YamlReader(std::make_shared<const Impl>(
        Impl{item, mark, fmt::format("{}[{}]", impl_->key, read.size()), impl_->file})));
  }
  return read;
}

const std::string& YamlReader::scalar(const char* wanted) const {
  if (kind() != Kind::scalar) {
    fail(fmt::format("must be {}, is {}", wanted, name_of(kind())));
  }
  return impl_->node.Scalar();
}

std::string YamlReader::text() const {
  const std::string& written = scalar("text");
  if (written.empty()) {
    fail("must not be empty text");
  }
  return written;
}

bool YamlReader::flag() const {
  const std::string& written = scalar("true or false");
  if (is_quoted() || (written != "true" && written != "false")) {
    fail(fmt::format("must be true or false, is '{}'", written));
  }
  return written == "true";
}

std::int64_t YamlReader::integer(IntegerRange range) const {
  const std::string& written = scalar("a whole number");
  std::int64_t value = 0;
  const char* end = written.data() + written.size();
  const auto [rest, failure] = std::from_chars(written.data(), end, value);
  if (failure == std::errc::result_out_of_range && rest == end) {
    fail(fmt::format("must be between {} and {}, is {}", range.least, range.most, written));
  }
  if (failure != std::errc{} || rest != end || is_quoted()) {
    fail(fmt::format("must be a whole number, is '{}'", written),
         is_quoted() && failure == std::errc{} && rest == end ? "remove the quotes" : "");
  }
  if (value < range.least || value > range.most) {
    fail(fmt::format("must be between {} and {}, is {}", range.least, range.most, value));
  }
  return value;
}

double YamlReader::number() const {
  const std::string& written = scalar("a number");
  double value = 0.0;
  const char* end = written.data() + written.size();
  const auto [rest, failure] = std::from_chars(written.data(), end, value);
  if (failure != std::errc{} || rest != end || !std::isfinite(value) || is_quoted()) {
    fail(fmt::format("must be a number, is '{}'", written));
  }
  return value;
}

DType YamlReader::dtype(std::initializer_list<DType> allowed) const {
  const std::string& written = scalar("a dtype");
  std::vector<std::string> words;
  for (const DType dtype : allowed) {
    if (written == to_text(dtype)) {
      return dtype;
    }
    words.emplace_back(to_text(dtype));
  }
  fail_choice(words);
}

void YamlReader::fail_choice(const std::vector<std::string>& choices) const {
  fail(fmt::format("'{}' is not one of {}", impl_->node.Scalar(), fmt::join(choices, ", ")),
       suggest(impl_->node.Scalar(), choices).starts_with("did you")
           ? suggest(impl_->node.Scalar(), choices)
           : "");
}

void YamlReader::fail(const std::string& reason, const std::string& suggestion) const {
  throw ConfigError(place_of(impl_->mark, file(), impl_->key), reason, suggestion);
}

void YamlReader::fail_later(const std::string& what, const std::string& suggestion) const {
  fail(fmt::format("{} is not supported by this release", what), suggestion);
}

}  // namespace fsdp
