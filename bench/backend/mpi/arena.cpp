#include "bench/backend/mpi/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/units/error.hpp"
#include "kernels/payload.hpp"

namespace fsdp::mpi {
namespace {

/// bf16 1.0 twice, and a normal f32: denormal left-overs would slow the arithmetic down.
constexpr std::uint32_t harmless = 0x3F803F80;
constexpr std::size_t large_page = 2 << 20;

void touch(std::byte* memory, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + sizeof(harmless) <= bytes; at += sizeof(harmless)) {
    std::memcpy(memory + at, &harmless, sizeof(harmless));
  }
  std::memset(memory + at, 0, bytes - at);
}

}  // namespace

void Unmap::operator()(std::byte*) const { munmap(mapping, mapping_bytes); }

Arena::Arena(Bytes bytes) {
  const auto length = static_cast<std::size_t>(bytes.value);
  if (length == 0) {
    return;
  }
  const std::size_t mapping_bytes = length + large_page;
  void* mapping =
      mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw EnvironmentError(fmt::format(
        "no memory for an arena of {}: {}. Use a smaller model or micro-batch, or fewer ranks on "
        "this machine",
        to_text(bytes), std::strerror(errno)));
  }
  // Aligned and advised: whether a block gets large pages is otherwise a matter of luck, which
  // decided over a factor of two in the all-gather's bandwidth. Where the kernel refuses, small
  // pages do as well.
  void* aligned = mapping;
  std::size_t space = mapping_bytes;
  std::align(large_page, length, aligned, space);
  madvise(aligned, length, MADV_HUGEPAGE);
  memory_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(aligned),
                                              Unmap{mapping, mapping_bytes});
  bytes_ = bytes;
  touch(memory_.get(), length);
}

Arenas::Arenas(const Schedule& schedule) {
  const ArenaLayout layout = layout_arenas(schedule);
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    pools_[pool] = Arena(layout.pool_bytes[pool]);
  }
  views_.reserve(schedule.buffers.size());
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    const Arena& pool = pools_[static_cast<std::size_t>(buffer.pool)];
    const Bytes end = layout.offsets[i] + buffer.bytes();
    expects(end <= pool.bytes(), "every buffer lies inside its pool's arena");
    views_.push_back({pool.data() + layout.offsets[i].value, buffer.numel, buffer.dtype});
  }
}

std::array<Bytes, pool_count> Arenas::pool_bytes() const {
  std::array<Bytes, pool_count> bytes{};
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    bytes[pool] = pools_[pool].bytes();
  }
  return bytes;
}

void Arenas::poison_transients() const {
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    if (static_cast<Pool>(pool) != Pool::resident) {
      kernels::poison({pools_[pool].data(), pools_[pool].bytes().value, DType::u8});
    }
  }
}

void Arenas::abandon() {
  for (Arena& pool : pools_) {
    pool.abandon();
  }
}

}  // namespace fsdp::mpi
