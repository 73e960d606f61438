// How PyTorch splits the division of summed gradients so that half precision neither overflows nor
// underflows.
#pragma once

namespace fsdp {

/// Divisors before and after the reduction: the first is the least power of two that does not fall
/// short of the square root of `factor` while it divides it evenly (FSDP1's default_hooks, FSDP2's
/// _get_gradient_divide_factors): 8 -> {4, 2}, 3 -> {2, 1.5}.
struct Divisors {
  double before = 1;
  double after = 1;
};
Divisors divisors(double factor);

}  // namespace fsdp
