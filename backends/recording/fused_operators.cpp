#include "backends/recording/fused_operators.h"

#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/zeros.h>

namespace rondo {

namespace {

void mm_to_(const at::Tensor& target, const at::Tensor& a, const at::Tensor& b, bool adds) {
  const at::Tensor product = at::mm(a, b);
  adds ? target.add_(product) : target.copy_(product);
}

at::Tensor gradients_of_parts(at::TensorList gradients,
                              at::IntArrayRef sizes,
                              int64_t dim,
                              at::IntArrayRef starts) {
  at::Tensor whole = at::zeros(sizes, gradients[0].options());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const bool has_dim = gradients[i].dim() == whole.dim();
    const at::Tensor part = has_dim ? gradients[i] : gradients[i].unsqueeze(dim);
    whole.narrow(dim, starts[i], part.size(dim)).add_(part);
  }
  return whole;
}

constexpr int64_t kNoRoute = 4;

// What follows works in place where it can: see `bytes_inside` in plan/memory_report.cpp.

at::Tensor routes_of(at::Tensor indices, int64_t width, const at::Tensor& largest) {
  const at::Tensor row = indices.floor_divide(width).remainder_(2);
  const at::Tensor column = indices.remainder_(width).remainder_(2);
  return column.add_(row, 2).masked_fill_(largest.le(0), kNoRoute).to(at::kByte);
}

at::Tensor indices_of(const at::Tensor& routes, int64_t width) {
  const at::Tensor route = routes.to(at::kLong).remainder_(kNoRoute);
  const at::Tensor first_rows = at::arange(routes.size(2), at::kLong).mul_(2).unsqueeze(1);
  const at::Tensor first_columns = at::arange(routes.size(3), at::kLong).mul_(2);
  const at::Tensor row = route.floor_divide(2).add_(first_rows);
  return row.mul_(width).add_(first_columns).add_(route.remainder_(2));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_relu_pool(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    double momentum,
    double eps) {
  auto [normal, mean, inverse_deviation] = at::native_batch_norm(
      x, weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  auto [largest, indices] = at::max_pool2d_with_indices(normal.relu_(), {2, 2});
  normal.reset();
  const at::Tensor routes = routes_of(std::move(indices), x.size(3), largest);
  return {largest, routes, mean, inverse_deviation};
}

at::Tensor spread(const at::Tensor& gradient, const at::Tensor& routes, const at::Tensor& x) {
  return at::max_pool2d_with_indices_backward(gradient.masked_fill(routes.eq(kNoRoute), 0),
                                              x,
                                              {2, 2},
                                              /*stride=*/{},
                                              /*padding=*/{0, 0},
                                              /*dilation=*/{1, 1},
                                              /*ceil_mode=*/false,
                                              indices_of(routes, x.size(3)));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_relu_pool_backward(
    const at::Tensor& gradient,
    const at::Tensor& routes,
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& mean,
    const at::Tensor& inverse_deviation,
    double eps) {
  return at::native_batch_norm_backward(spread(gradient, routes, x),
                                        x,
                                        weight,
                                        /*running_mean=*/{},
                                        /*running_var=*/{},
                                        mean,
                                        inverse_deviation,
                                        /*train=*/true,
                                        eps,
                                        {true, true, true});
}

template <class Function>
void define(torch::Library& library, const char* schema, const char* name, Function* function) {
  library.def(schema);
  library.impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
}

}  // namespace

void define_fused_operators(torch::Library& library) {
  define(
      library, "mm_to_(Tensor(a!) target, Tensor a, Tensor b, bool adds) -> ()", "mm_to_", &mm_to_);
  define(library,
         "gradients_of_parts(Tensor[] gradients, int[] sizes, int dim, int[] starts) -> Tensor",
         "gradients_of_parts",
         &gradients_of_parts);
  define(library,
         "batch_norm_relu_pool(Tensor x, Tensor weight, Tensor bias, Tensor(a!) running_mean, "
         "Tensor(b!) running_var, float momentum, float eps) -> (Tensor largest, Tensor routes, "
         "Tensor mean, Tensor inverse_deviation)",
         "batch_norm_relu_pool",
         &batch_norm_relu_pool);
  define(library,
         "batch_norm_relu_pool_backward(Tensor gradient, Tensor routes, Tensor x, Tensor weight, "
         "Tensor mean, Tensor inverse_deviation, float eps) -> (Tensor, Tensor, Tensor)",
         "batch_norm_relu_pool_backward",
         &batch_norm_relu_pool_backward);
}

}  // namespace rondo
