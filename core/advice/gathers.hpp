// What became of each all-gather of a schedule: whether anything read what it brought.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// One all-gather and the use of its result.
struct Gather {
  OpId op;
  UnitId unit;
  Phase phase = Phase::forward;
  int micro = 0;
  Bytes bytes;
  /// What the gathered parameters went into, over the whole step. A Compute without products is the
  /// gradient of a parameter that is looked up or added, not multiplied.
  enum class Use { none, no_product, product } use = Use::none;
};

/// In host issue order.
std::vector<Gather> gathers_of(const Schedule& schedule);

}  // namespace fsdp
