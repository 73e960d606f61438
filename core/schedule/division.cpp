#include "core/schedule/division.hpp"

#include <cmath>

namespace fsdp {

Divisors divisors(double factor) {
  double before = 1;
  while (std::fmod(factor, before) == 0 && factor / before > before) {
    before *= 2;
  }
  return {.before = before, .after = factor / before};
}

}  // namespace fsdp
