#pragma once

// Parameters and gradients for the tests of optimizers.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/named_tensor.h"

namespace rondo::test {

/// Sizes that fill vector registers and that leave tails.
inline const std::vector<std::vector<int64_t>> kShapes = {
    {1}, {3, 5}, {}, {17}, {8, 32}, {2, 3, 5, 7}, {0, 4}, {33, 1}, {1021}};

/// "p0", "p1" … of the shapes, the same values for the same seed, zeros of both signs among them.
NamedTensors parameters(uint64_t seed,
                        at::ScalarType dtype = at::kFloat,
                        const std::vector<std::vector<int64_t>>& shapes = kShapes);

std::vector<at::Tensor> tensors(const NamedTensors& named);

/// Gradients over many magnitudes, with zeros of both signs, as a ReLU leaves them.
at::Tensor gradient_like(const at::Tensor& value);

/// Gives both the same new gradients.
void give_gradients(const NamedTensors& a, const NamedTensors& b, uint64_t seed);

/// Name of the first tensor whose bytes differ; "" when none does.
std::string first_different(const NamedTensors& a, const NamedTensors& b);

}  // namespace rondo::test
