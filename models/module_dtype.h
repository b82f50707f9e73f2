#pragma once

#include <c10/core/ScalarType.h>

namespace torch::nn {
class Module;
}

namespace rondo {

/// Gives a module's floating-point parameters and buffers another dtype, in place: tensors stay the
/// same objects, tied weights stay tied. Integers stay as they are.
void set_floating_dtype(torch::nn::Module& module, at::ScalarType dtype);

}  // namespace rondo
