// The memory of a prepared step: one block a pool, allocated and touched before anything is timed.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/schedule/memory.hpp"
#include "kernels/array.hpp"

namespace fsdp::mpi {

struct Unmap {
  void* mapping = nullptr;
  std::size_t mapping_bytes = 0;
  void operator()(std::byte* memory) const;
};

/// A block of pages straight from the kernel, so that giving it back really gives it back: a tuner
/// prepares steps of many sizes one after another.
class Arena {
 public:
  Arena() = default;
  /// Every page is touched. Throws EnvironmentError with the size when there is not enough memory.
  explicit Arena(Bytes bytes);
  Bytes bytes() const { return bytes_; }
  std::byte* data() const { return memory_.get(); }
  /// Gives the block up without freeing it, because MPI may still write to it.
  void abandon() { static_cast<void>(memory_.release()); }

 private:
  std::unique_ptr<std::byte, Unmap> memory_;
  Bytes bytes_;
};

/// All arenas of a schedule and where its buffers lie.
class Arenas {
 public:
  explicit Arenas(const Schedule& schedule);
  kernels::Array operator[](BufferId id) const { return views_[id.index()]; }
  std::array<Bytes, pool_count> pool_bytes() const;
  /// Poisons every pool but the resident one.
  void poison_transients() const;
  void abandon();

 private:
  std::array<Arena, pool_count> pools_;
  std::vector<kernels::Array> views_;
};

}  // namespace fsdp::mpi
