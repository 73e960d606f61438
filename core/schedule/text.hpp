// The schedule as a person reads it, one op a line: the golden form of tests/golden/schedules.
#pragma once

#include <string>

#include "core/schedule/schedule.hpp"

namespace fsdp {

std::string to_text(const Schedule& schedule);
/// Mesh and policy: the first line of to_text.
std::string header_text(const Schedule& schedule);
/// A unit without its name and number.
std::string unit_text(const FsdpUnit& unit);

/// Numbers in a line count from these: lines of two equal blocks are equal when each counts from
/// its own unit and op.
struct Numbering {
  std::int32_t unit = 0;
  std::int32_t op = 0;
};
/// One line, without its end.
std::string op_text(const Schedule& schedule, OpId id, const Numbering& from = {});

/// Sixteen hex digits over to_text: two schedules with the same hash are the same schedule.
std::string schedule_hash(const Schedule& schedule);

}  // namespace fsdp
