// A bare MPI_Iallgather loop with nothing of the replay around it: what the replay's all-gather is
// held against. No mpi.h here, so that tests may include it.
#pragma once

#include <memory>

#include "core/units/quantity.hpp"

namespace fsdp::mpi {

class RawAllGather {
 public:
  /// In place over all ranks; `bytes` is the gathered size. Collective. The Session stands already.
  explicit RawAllGather(Bytes bytes);
  ~RawAllGather();
  RawAllGather(const RawAllGather&) = delete;
  RawAllGather& operator=(const RawAllGather&) = delete;

  /// One all-gather, polled with yields until it is complete. The own slice is written anew before
  /// the clock starts, as a copy-in does: a slice that other cores still hold unchanged in their
  /// caches would arrive a quarter faster.
  Nanoseconds run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fsdp::mpi
