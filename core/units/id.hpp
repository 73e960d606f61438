// An index that knows what it indexes, so that a unit's number is never used to look up a buffer.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace fsdp {

template <class T>
struct Id {
  std::int32_t value = -1;

  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

}  // namespace fsdp
