// Checks that a schedule is one a correct runtime could have issued; the tests hold every generated
// schedule to it.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

struct Violation {
  OpId op;
  std::string what;
};

/// Empty when all hold: edges point backwards and across streams; every buffer is allocated once
/// before use and freed once after its last use; a free happens after everything that touched the
/// buffer on other streams than its pool's (so that its pool may reuse the memory); a reader
/// happens after the writer; gathered and reduced sizes agree with the unit's layout; and where the
/// ops are those that build_schedule makes of the plan, each waits for whatever it waits for there.
std::vector<Violation> verify(const Schedule& schedule);

}  // namespace fsdp
