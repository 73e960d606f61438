// Known contents for every parameter and gradient, so that moved data can be checked bit by bit.
// All numbers are small integers, exact in bf16, and so are their sums in any order: a mismatch is
// never a matter of rounding.
#pragma once

#include <optional>

#include "kernels/array.hpp"

namespace fsdp::kernels {

/// The largest group whose sums stay exact in bf16 (integers up to 256).
inline constexpr int payload_max_ranks = 256;

/// Whose contents: parameter `parameter` of unit `unit`, which has `numel` elements; elements
/// beyond are padding and zero.
struct PayloadKey {
  int unit = 0;
  int parameter = 0;
  std::int64_t numel = 0;
};

/// How gradients of all ranks become one number.
struct PayloadSum {
  int ranks = 1;
  float factor = 1;          ///< multiplied after the sum
  DType dtype = DType::f32;  ///< the sum is taken and scaled in this dtype
};

/// The first element that differs, counted from the start of the checked array.
struct PayloadMismatch {
  std::int64_t element = 0;
  float expected = 0;
  float found = 0;
};

/// An integer of [-256, 256] that is never 0, so that padding differs from data.
int payload_value(const PayloadKey& key, std::int64_t element);
/// An integer that is never 0 and, summed over `ranks` ranks, stays within [-256, 256].
int payload_gradient(const PayloadKey& key, std::int64_t element, int rank, int ranks);
/// What the ranks' gradients of one element add up to.
float payload_sum(const PayloadKey& key, std::int64_t element, const PayloadSum& how);

/// to[i] = value of element first + i, or zero beyond the parameter's end.
void fill_values(const PayloadKey& key, std::int64_t first, const Array& to);
/// to[i] = this rank's gradient of element first + i, or zero beyond the parameter's end.
void fill_gradients(const PayloadKey& key, std::int64_t first, int rank, int ranks,
                    const Array& to);

/// Compares with fill_values, bit by bit.
std::optional<PayloadMismatch> verify_values(const PayloadKey& key, std::int64_t first,
                                             const ConstArray& found);
/// Compares with the scaled sum over all ranks, bit by bit.
std::optional<PayloadMismatch> verify_sums(const PayloadKey& key, std::int64_t first,
                                           const PayloadSum& how, const ConstArray& found);

/// Fills with bytes 0xFF: a NaN in every floating type, so that reading what nobody wrote shows.
void poison(const Array& memory);

}  // namespace fsdp::kernels
