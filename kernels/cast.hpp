// Copies that change the element type.
#pragma once

#include "kernels/array.hpp"

namespace fsdp::kernels {

/// `to` becomes `from` in its own dtype; a plain copy when the dtypes agree. f32 to bf16 rounds to
/// nearest, ties to even. Sizes must be equal and the arrays must not overlap.
void cast(const ConstArray& from, const Array& to);

}  // namespace fsdp::kernels
