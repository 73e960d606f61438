// The order of a schedule's ops as the plain transitive closure of its rules, and the accesses that
// need an order: what core/schedule's verify is held against, worked out another way.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace fsdp::test {

class Closure {
 public:
  explicit Closure(const Schedule& schedule);
  /// True when `a` ends before `b` starts in every run.
  bool operator()(OpId a, OpId b) const;

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;  // a row an op: the ops before it
};

/// Two ops of which the first must end before the second starts.
struct Needed {
  OpId first;
  OpId second;
};

/// Every two ops that touch one buffer and do not both only read it, where the allocation and the
/// free of a buffer change it too; and each op before the end of the step. A free may come before
/// what still runs on the stream of the buffer's pool: the next owner of the memory stands there.
std::vector<Needed> needed_orders(const Schedule& schedule);

}  // namespace fsdp::test
