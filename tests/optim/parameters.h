#pragma once

// Parameters and gradients for the tests of optimizers.

#include <torch/torch.h>

#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace rondo::test {

/// Sizes that fill vector registers and that leave tails.
inline const std::vector<std::vector<int64_t>> kShapes = {
    {1}, {3, 5}, {}, {17}, {8, 32}, {2, 3, 5, 7}, {0, 4}, {33, 1}, {1021}};

/// "p0", "p1" … of the shapes, the same values for the same seed, zeros of both signs among them.
inline NamedTensors parameters(uint64_t seed,
                               at::ScalarType dtype = at::kFloat,
                               const std::vector<std::vector<int64_t>>& shapes = kShapes) {
  torch::manual_seed(seed);
  NamedTensors made;
  for (const auto& shape : shapes) {
    made.emplace_back(
        "p" + std::to_string(made.size()),
        (torch::randn(shape, at::kDouble) * (torch::rand(shape) > 0.1)).to(dtype).requires_grad_());
  }
  return made;
}

inline std::vector<at::Tensor> tensors(const NamedTensors& named) {
  std::vector<at::Tensor> values;
  for (const NamedTensor& one : named) {
    values.push_back(one.second);
  }
  return values;
}

/// Gradients over many magnitudes, with zeros of both signs, as a ReLU leaves them.
inline at::Tensor gradient_like(const at::Tensor& value) {
  const at::Tensor normal = torch::randn(value.sizes(), at::kDouble);
  const at::Tensor spread = normal * torch::exp(3.0 * torch::randn(value.sizes(), at::kDouble));
  const at::Tensor masked = spread * (torch::rand(value.sizes()) > 0.2);
  return masked.to(value.scalar_type());
}

/// Gives both the same new gradients.
inline void give_gradients(const NamedTensors& a, const NamedTensors& b, uint64_t seed) {
  torch::manual_seed(seed);
  for (size_t i = 0; i < a.size(); ++i) {
    const at::Tensor grad = gradient_like(a[i].second);
    a[i].second.mutable_grad() = grad;
    b[i].second.mutable_grad() = grad.clone();
  }
}

/// Name of the first tensor whose bytes differ; "" when none does.
inline std::string first_different(const NamedTensors& a, const NamedTensors& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal_bytes(a[i].second.detach(), b[i].second.detach())) {
      return a[i].first;
    }
  }
  return "";
}

}  // namespace rondo::test
