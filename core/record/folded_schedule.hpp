// The text form of a schedule for people: what equal units do one after another is told once.
#pragma once

#include <string>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// The lines of to_text(schedule), where a run of lines that repeats for the next unit, and the
/// next, is followed by one line that says for which. Only repeats are left out: numbers of ops and
/// units are those of to_text.
std::string folded_text(const Schedule& schedule);

}  // namespace fsdp
