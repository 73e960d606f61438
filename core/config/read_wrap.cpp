#include "core/config/read_wrap.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/config/read_policy.hpp"

namespace fsdp {
namespace {

WrapRule read_by(const YamlReader& value) {
  enum class By { none, block, sub_block, titan, always };
  switch (value.choice<By>({{"none", By::none},
                            {"block", By::block},
                            {"sub_block", By::sub_block},
                            {"titan", By::titan},
                            {"always", By::always}})) {
    case By::none:
      return WrapNone{};
    case By::block:
      return WrapBlock{};
    case By::sub_block:
      return WrapSubBlock{};
    case By::titan:
      return WrapTitan{};
    case By::always:
      break;
  }
  return WrapAlways{};
}

WrapRule read_groups(const YamlReader& list) {
  WrapGroups wrap;
  if (list.is_empty_list()) {
    return wrap;  // the root takes everything
  }
  std::set<std::string> seen;
  for (const YamlReader& group : list.items()) {
    wrap.groups.push_back(read_names(group, "module"));
    for (const std::string& module : wrap.groups.back()) {
      if (!seen.insert(module).second) {
        group.fail(fmt::format("the module '{}' is in two groups", module));
      }
    }
  }
  return wrap;
}

/// An empty list is a value here: it turns off PyTorch's default.
std::vector<std::string> read_classes(const YamlReader& list) {
  return list.is_empty_list() ? std::vector<std::string>{} : read_names(list, "class");
}

WrapRule read_size(const YamlReader& value) {
  value.expect_map({.known = {"min_params", "force_leaf", "exclude"}, .later = {}});
  WrapSize wrap;
  if (const auto elements = value.find("min_params")) {
    wrap.min_params = read_elements(*elements);
  }
  if (const auto classes = value.find("force_leaf")) {
    wrap.force_leaf = read_classes(*classes);
  }
  if (const auto classes = value.find("exclude")) {
    wrap.exclude = read_classes(*classes);
  }
  return wrap;
}

WrapRule read_total_size(const YamlReader& value) {
  value.expect_map({.known = {"min_params"}, .later = {}});
  WrapTotalSize wrap;
  if (const auto elements = value.find("min_params")) {
    wrap.min_params = read_elements(*elements);
  }
  return wrap;
}

WrapRule read_partition(const YamlReader& list) {
  WrapPartition wrap;
  for (const YamlReader& item : list.items()) {
    wrap.blocks.push_back(static_cast<int>(item.integer(unit_size_range)));
  }
  return wrap;
}

}  // namespace

std::vector<std::string> read_names(const YamlReader& list, const char* what) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const YamlReader& item : list.items()) {
    names.push_back(item.text());
    if (!seen.insert(names.back()).second) {
      item.fail(fmt::format("the {} '{}' is listed twice", what, names.back()));
    }
  }
  return names;
}

std::int64_t read_elements(const YamlReader& value) {
  constexpr double most = 1e15;
  const double number = value.number();
  if (!(number >= 0 && number <= most) || number != std::floor(number)) {
    value.fail(
        fmt::format("must be a whole number of elements up to {:g}, is {}", most, value.text()));
  }
  return static_cast<std::int64_t>(number);
}

WrapRule read_wrap(const YamlReader& wrap) {
  if (wrap.kind() == YamlReader::Kind::scalar) {
    wrap.fail(fmt::format("must be a mapping, is '{}'", wrap.text()),
              "write {by: block}, {every: 2}, {class: [...]} or {groups: [[...]]}");
  }
  const MapKeys rules{
      .known = {"by", "every", "partition", "class", "name", "size", "total_size", "groups"},
      .later = {}};
  wrap.expect_map(rules);
  const auto entries = wrap.entries();
  if (entries.size() != 1) {
    wrap.fail(fmt::format("must hold exactly one of {}; holds {}", fmt::join(rules.known, ", "),
                          entries.size()));
  }
  const auto& [rule, value] = entries.front();
  if (rule == "by") {
    return read_by(value);
  }
  if (rule == "every") {
    return WrapEvery{static_cast<int>(value.integer(unit_size_range))};
  }
  if (rule == "partition") {
    return read_partition(value);
  }
  if (rule == "class") {
    return WrapClass{read_names(value, "class")};
  }
  if (rule == "name") {
    return WrapName{value.text()};
  }
  if (rule == "size") {
    return read_size(value);
  }
  if (rule == "total_size") {
    return read_total_size(value);
  }
  return read_groups(value);
}

}  // namespace fsdp
