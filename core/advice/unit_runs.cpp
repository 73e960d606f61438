#include "core/advice/unit_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>

namespace fsdp {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// A name with its numbers taken out: "model.layers.7.mlp" is "model.layers.#.mlp" and 7.
struct Pattern {
  std::string text;
  std::vector<std::string> numbers;
};

Pattern pattern_of(const std::string& name) {
  Pattern out;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      out.text += name[i++];
      continue;
    }
    const std::size_t begin = i;
    while (i < name.size() && is_digit(name[i])) {
      ++i;
    }
    out.text += '#';
    out.numbers.push_back(name.substr(begin, i - begin));
  }
  return out;
}

/// What must be equal for two units to be alike.
auto key_of(const FsdpUnit& unit) {
  return std::tuple(pattern_of(unit.name).text, unit.numel, unit.padded_numel, unit.shard_numel,
                    unit.parameters.size(), unit.reshard_after_forward, unit.param_dtype,
                    unit.reduce_dtype, unit.master_dtype, unit.gather_dtype);
}

/// One number that varies is written as a range in its place; of several the ends are named.
std::string name_of(const WrapPlan& plan, const std::vector<UnitId>& units) {
  const Pattern first = pattern_of(plan[units.front()].name);
  const Pattern last = pattern_of(plan[units.back()].name);
  if (units.size() == 1) {
    return plan[units.front()].name;
  }
  std::vector<std::size_t> varying;
  for (std::size_t i = 0; i < first.numbers.size(); ++i) {
    if (first.numbers[i] != last.numbers[i]) {
      varying.push_back(i);
    }
  }
  if (varying.size() != 1) {
    return fmt::format("{} .. {}", plan[units.front()].name, plan[units.back()].name);
  }
  std::string out;
  std::size_t number = 0;
  for (std::size_t i = 0; i < first.text.size(); ++i) {
    if (first.text[i] != '#') {
      out += first.text[i];
    } else if (number == varying.front()) {
      const bool ends = i + 1 == first.text.size();
      out += fmt::format("{}{} .. {}{}", ends ? "" : "[", first.numbers[number],
                         last.numbers[number], ends ? "" : "]");
      ++number;
    } else {
      out += first.numbers[number++];
    }
  }
  return out;
}

}  // namespace

UnitRun run_of(const WrapPlan& plan, std::vector<UnitId> units) {
  UnitRun out{.units = std::move(units), .name = {}};
  out.name = name_of(plan, out.units);
  return out;
}

std::vector<UnitRun> unit_runs(const WrapPlan& plan) {
  std::map<decltype(key_of(plan.units.front())), std::size_t> places;
  std::vector<UnitRun> out;
  for (std::size_t i = 0; i < plan.units.size(); ++i) {
    const auto [it, added] = places.try_emplace(key_of(plan.units[i]), out.size());
    if (added) {
      out.emplace_back();
    }
    out[it->second].units.push_back({static_cast<std::int32_t>(i)});
  }
  for (UnitRun& run : out) {
    run.name = name_of(plan, run.units);
  }
  return out;
}

std::string to_text(const UnitRun& run) {
  return run.count() == 1 ? run.name : fmt::format("{} ({} alike)", run.name, run.count());
}

}  // namespace fsdp
