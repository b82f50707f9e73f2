#include "optim/parameters.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "core/state_dict.h"

namespace rondo::test {

NamedTensors parameters(uint64_t seed,
                        at::ScalarType dtype,
                        const std::vector<std::vector<int64_t>>& shapes) {
  torch::manual_seed(seed);
  NamedTensors made;
  for (const auto& shape : shapes) {
    made.emplace_back(
        "p" + std::to_string(made.size()),
        (torch::randn(shape, at::kDouble) * (torch::rand(shape) > 0.1)).to(dtype).requires_grad_());
  }
  return made;
}

std::vector<at::Tensor> tensors(const NamedTensors& named) {
  std::vector<at::Tensor> values;
  for (const NamedTensor& one : named) {
    values.push_back(one.second);
  }
  return values;
}

at::Tensor gradient_like(const at::Tensor& value) {
  const at::Tensor normal = torch::randn(value.sizes(), at::kDouble);
  const at::Tensor spread = normal * torch::exp(3.0 * torch::randn(value.sizes(), at::kDouble));
  const at::Tensor masked = spread * (torch::rand(value.sizes()) > 0.2);
  return masked.to(value.scalar_type());
}

void give_gradients(const NamedTensors& a, const NamedTensors& b, uint64_t seed) {
  torch::manual_seed(seed);
  for (size_t i = 0; i < a.size(); ++i) {
    const at::Tensor grad = gradient_like(a[i].second);
    a[i].second.mutable_grad() = grad;
    b[i].second.mutable_grad() = grad.clone();
  }
}

std::string first_different(const NamedTensors& a, const NamedTensors& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal_bytes(a[i].second.detach(), b[i].second.detach())) {
      return a[i].first;
    }
  }
  return "";
}

}  // namespace rondo::test
