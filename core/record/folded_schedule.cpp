#include "core/record/folded_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/advice/unit_runs.hpp"
#include "core/schedule/text.hpp"

namespace fsdp {
namespace {

/// A longer stretch is no pattern that a reader would see.
constexpr std::size_t longest_period = 512;

struct Repeats {
  std::size_t period = 1;  ///< ops in the stretch
  std::size_t count = 1;   ///< how often it stands, the first time included
  int unit_step = 0;       ///< from one time to the next
};

class Folder {
 public:
  explicit Folder(const Schedule& schedule) : schedule_(schedule) {
    keys_.reserve(schedule.ops.size());
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      keys_.push_back(
          op_text(schedule, id(i), {.unit = unit(i), .op = static_cast<std::int32_t>(i)}));
    }
  }

  /// The stretch at `begin` that spares the most lines.
  Repeats at(std::size_t begin) const {
    Repeats best;
    const std::size_t limit = std::min(longest_period, (keys_.size() - begin) / 2);
    for (std::size_t period = 1; period <= limit; ++period) {
      if (keys_[begin] != keys_[begin + period]) {
        continue;
      }
      const Repeats found = count(begin, period);
      if (found.count > 1 && found.period * (found.count - 1) > best.period * (best.count - 1)) {
        best = found;
      }
    }
    return best;
  }

 private:
  static OpId id(std::size_t i) { return {static_cast<std::int32_t>(i)}; }
  std::int32_t unit(std::size_t i) const { return schedule_.ops[i].unit.value; }

  Repeats count(std::size_t begin, std::size_t period) const {
    Repeats out{.period = period, .count = 1, .unit_step = unit(begin + period) - unit(begin)};
    while (repeats(begin + out.count * period, out)) {
      ++out.count;
    }
    return out;
  }

  /// True when the stretch stands at `next` again, every op of it with its unit moved by the step.
  bool repeats(std::size_t next, const Repeats& found) const {
    if (found.unit_step == 0 || next + found.period > keys_.size()) {
      return false;
    }
    for (std::size_t i = next; i < next + found.period; ++i) {
      if (keys_[i] != keys_[i - found.period] ||
          unit(i) - unit(i - found.period) != found.unit_step) {
        return false;
      }
    }
    return true;
  }

  const Schedule& schedule_;
  std::vector<std::string> keys_;  // the ops' lines, counted from their own unit and number
};

std::string ops_text(const Schedule& schedule) {
  const Folder folder(schedule);
  std::string out;
  for (std::size_t i = 0; i < schedule.ops.size();) {
    const Repeats found = folder.at(i);
    for (std::size_t line = i; line < i + found.period; ++line) {
      out += op_text(schedule, {static_cast<std::int32_t>(line)}) + "\n";
    }
    const std::size_t end = i + found.period * found.count;
    if (found.count > 1) {
      const std::int32_t first = schedule.ops[i].unit.value;
      const auto last = first + found.unit_step * static_cast<int>(found.count - 1);
      out += fmt::format(
          "  ... {} again {} time{}, for u{}{}: #{} to #{}\n",
          found.period == 1 ? "this line" : fmt::format("these {} lines", found.period),
          found.count - 1, found.count == 2 ? "" : "s", first + found.unit_step,
          found.count == 2 ? "" : fmt::format(" .. u{}", last), i + found.period, end - 1);
    }
    i = end;
  }
  return out;
}

std::string numbers_text(const UnitRun& run) {
  std::string out = fmt::format("u{}", run.first().value);
  for (std::size_t i = 1; i < run.units.size(); ++i) {
    const bool follows = run.units[i].value == run.units[i - 1].value + 1;
    const bool goes_on =
        follows && i + 1 < run.units.size() && run.units[i + 1].value == run.units[i].value + 1;
    out += goes_on ? "" : fmt::format("{}u{}", follows ? " .. " : ", ", run.units[i].value);
  }
  return out;
}

std::string units_text(const WrapPlan& plan) {
  std::string out;
  for (const UnitRun& run : unit_runs(plan)) {
    out += fmt::format("{} {} {}\n", numbers_text(run), run.name, unit_text(plan[run.first()]));
  }
  return out;
}

}  // namespace

std::string folded_text(const Schedule& schedule) {
  return header_text(schedule) + "\n" + units_text(schedule.plan) + ops_text(schedule);
}

}  // namespace fsdp
