#include "kernels/payload.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/units/error.hpp"
#include "kernels/cast.hpp"

namespace fsdp::kernels {
namespace {

constexpr int exact_limit = 256;  // bf16 holds every integer up to 2^8
constexpr std::int64_t block_numel = 1024;

/// A mix of all bits (the finaliser of SplitMix64): neighbours get unrelated numbers, so that
/// shifted or swapped data cannot look right.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30U;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27U;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// What all elements of one parameter share, mixed once.
std::uint64_t seed_of(const PayloadKey& key) {
  const auto who = (static_cast<std::uint64_t>(key.unit) << 32U) ^
                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.parameter));
  return mix(who + 0x9E3779B97F4A7C15ULL);
}

/// A number of 1..limit with a sign. The upper bits are scaled by a product: a division an element
/// would take longer than all else in a check.
int signed_integer(std::uint64_t bits, int limit) {
  const int magnitude =
      1 + static_cast<int>(((bits >> 32U) * static_cast<std::uint64_t>(limit)) >> 32U);
  return (bits & 1U) != 0 ? -magnitude : magnitude;
}

int value_of(std::uint64_t seed, std::int64_t element) {
  return signed_integer(mix(seed + static_cast<std::uint64_t>(element)), exact_limit);
}

int gradient_limit(int ranks) { return std::clamp(exact_limit / ranks, 1, 16); }

int gradient_of(std::uint64_t seed, std::int64_t element, int rank, int limit) {
  const std::uint64_t bits = mix(seed + static_cast<std::uint64_t>(element));
  return signed_integer(mix(bits + static_cast<std::uint64_t>(rank) + 1U), limit);
}

float sum_of(std::uint64_t seed, std::int64_t element, const PayloadSum& how) {
  const int limit = gradient_limit(how.ranks);
  int total = 0;
  for (int rank = 0; rank < how.ranks; ++rank) {
    total += gradient_of(seed, element, rank, limit);
  }
  const float scaled = static_cast<float>(total) * how.factor;
  return how.dtype == DType::bf16 ? to_float(to_bf16(scaled)) : scaled;
}

/// Compares bit by bit; a sum that is zero with the wrong sign would show as well.
template <class Expected>
std::optional<PayloadMismatch> compare(const ConstArray& found, Expected&& expected) {
  for (std::int64_t i = 0; i < found.numel; ++i) {
    const float want = expected(i);
    const bool same =
        found.dtype == DType::bf16
            ? found.bf16s()[i].bits == to_bf16(want).bits
            : std::bit_cast<std::uint32_t>(found.floats()[i]) == std::bit_cast<std::uint32_t>(want);
    if (!same) {
      return PayloadMismatch{.element = i, .expected = want, .found = element(found, i)};
    }
  }
  return std::nullopt;
}

/// Writes `to` block by block through a small f32 buffer.
template <class Wanted>
void fill(const Array& to, Wanted&& wanted) {
  std::array<float, block_numel> block{};
  for (std::int64_t begin = 0; begin < to.numel; begin += block_numel) {
    const std::int64_t count = std::min(block_numel, to.numel - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      block[static_cast<std::size_t>(i)] = wanted(begin + i);
    }
    cast({reinterpret_cast<const std::byte*>(block.data()), count, DType::f32},
         to.slice(begin, count));
  }
}

}  // namespace

int payload_value(const PayloadKey& key, std::int64_t element) {
  return value_of(seed_of(key), element);
}

int payload_gradient(const PayloadKey& key, std::int64_t element, int rank, int ranks) {
  return gradient_of(seed_of(key), element, rank, gradient_limit(ranks));
}

float payload_sum(const PayloadKey& key, std::int64_t element, const PayloadSum& how) {
  return sum_of(seed_of(key), element, how);
}

void fill_values(const PayloadKey& key, std::int64_t first, const Array& to) {
  fill(to, [&, seed = seed_of(key)](std::int64_t i) {
    return first + i < key.numel ? static_cast<float>(value_of(seed, first + i)) : 0.0F;
  });
}

void fill_gradients(const PayloadKey& key, std::int64_t first, int rank, int ranks,
                    const Array& to) {
  const int limit = gradient_limit(ranks);
  fill(to, [&, seed = seed_of(key)](std::int64_t i) {
    return first + i < key.numel ? static_cast<float>(gradient_of(seed, first + i, rank, limit))
                                 : 0.0F;
  });
}

std::optional<PayloadMismatch> verify_values(const PayloadKey& key, std::int64_t first,
                                             const ConstArray& found) {
  return compare(found, [&, seed = seed_of(key)](std::int64_t i) {
    return first + i < key.numel ? static_cast<float>(value_of(seed, first + i)) : 0.0F;
  });
}

std::optional<PayloadMismatch> verify_sums(const PayloadKey& key, std::int64_t first,
                                           const PayloadSum& how, const ConstArray& found) {
  expects(how.ranks <= payload_max_ranks, "the payload's sums are exact up to 256 ranks");
  return compare(found, [&, seed = seed_of(key)](std::int64_t i) {
    return first + i < key.numel ? sum_of(seed, first + i, how) : 0.0F * how.factor;
  });
}

void poison(const Array& memory) {
  if (memory.numel > 0) {
    std::memset(memory.data, 0xFF, memory.bytes());
  }
}

}  // namespace fsdp::kernels
