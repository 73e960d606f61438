// The schedule as a person reads it, one op a line: the golden form of tests/golden/schedules.
#pragma once

#include <string>

#include "core/schedule/schedule.hpp"

namespace fsdp {

std::string to_text(const Schedule& schedule);
/// Sixteen hex digits over to_text: two schedules with the same hash are the same schedule.
std::string schedule_hash(const Schedule& schedule);

}  // namespace fsdp
