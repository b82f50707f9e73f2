#include "optim/operators.h"

#include <torch/library.h>

#include "optim/internal/update_operators.h"

namespace rondo {

void register_optimizer_operators() {
  static const torch::Library library = [] {
    // A fragment: other folders add their operators to the same namespace.
    torch::Library made(torch::Library::FRAGMENT, "rondo", {}, __FILE__, __LINE__);
    detail::define_sgd_operator(made);
    detail::define_adam_operator(made);
    return made;
  }();
}

namespace detail {

double& number_in(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() == 0 && tensor.is_cpu() && tensor.scalar_type() == at::kDouble,
              "expected a 0-dim float64 tensor on the CPU, got ",
              tensor.toString(),
              tensor.sizes());
  return *tensor.data_ptr<double>();
}

namespace {

bool same_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_flat(const at::Tensor& param, std::initializer_list<const at::Tensor*> others) {
  const at::ScalarType dtype = param.scalar_type();
  if (!param.is_cpu() || (dtype != at::kFloat && dtype != at::kDouble) ||
      !param.is_non_overlapping_and_dense()) {
    return false;
  }
  for (const at::Tensor* other : others) {
    if (other->defined() && (other->scalar_type() != dtype || other->sizes() != param.sizes() ||
                             !same_order(param, *other))) {
      return false;
    }
  }
  return true;
}

bool is_number_like(const at::Tensor& scale, const at::Tensor& param) {
  return !scale.defined() ||
         (scale.numel() == 1 && scale.is_cpu() && scale.scalar_type() == param.scalar_type());
}

void scale_by_operator(const at::Tensor& grad, const at::Tensor& scale) {
  if (scale.defined()) {
    grad.mul_(scale);
  }
}

}  // namespace detail

}  // namespace rondo
