// Arithmetic of the reduce-scatter: what MPI does not know how to do with bf16.
#pragma once

#include "kernels/array.hpp"

namespace fsdp::kernels {

/// total += part, element by element; bf16 adds in f32 and rounds to nearest even. Same dtype and
/// size.
void sum(const ConstArray& part, const Array& total);

/// values *= factor, element by element; bf16 multiplies in f32 and rounds to nearest even.
void scale(const Array& values, float factor);

}  // namespace fsdp::kernels
