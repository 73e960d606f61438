// Where the parts that ranks send and receive, and the parameters inside them, do not fall on
// 16-byte boundaries: FSDP2's copy-out and chunk-cat move 16 bytes at a time where they can.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp {

/// Bytes of one vector load of PyTorch's split-with-sizes and chunk-cat kernels.
inline constexpr std::int64_t vector_bytes = 16;

/// The collectives of one kind that bring or reduce one unit's parameters.
struct CollectiveAlignment {
  struct Parameter {
    int index = 0;  ///< in the unit
    Bytes offset;   ///< inside a rank's part, where it is no multiple of 16
  };
  UnitId unit;
  OpId op;        ///< the first of them
  int count = 0;  ///< a step
  Bytes part;     ///< of one rank
  Bytes beyond;   ///< bytes of the part behind its last multiple of 16
  std::vector<Parameter> parameters;
  /// What a rank's part would grow by if each piece of it (FSDP2: each parameter; FSDP1: the whole)
  /// were padded to 16 bytes.
  Bytes padding;

  bool aligned() const { return beyond.value == 0 && parameters.empty(); }
};

/// All-gathers and reduce-scatters by unit, in order of their first op.
std::vector<CollectiveAlignment> alignment_report(const Schedule& schedule);

}  // namespace fsdp
