#include "tracing/operators/fused_operators.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Reduction.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/zeros.h>

#include "tracing/operators/define_operator.h"

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

at::Tensor cross_entropy_backward(const at::Tensor& gradient,
                                  const at::Tensor& logarithms,
                                  const at::Tensor& labels,
                                  int64_t ignored,
                                  const at::Tensor& weight) {
  const at::Tensor of_logarithms = at::nll_loss_backward(
      gradient, logarithms, labels, /*weight=*/{}, at::Reduction::Mean, ignored, weight);
  return at::_log_softmax_backward_data(
      of_logarithms, logarithms, /*dim=*/1, logarithms.scalar_type());
}

// What follows works in place where it can: see `scratch_of_...` below.

/// Channels that lie side by side in [batch, channels / block, height, width, block]; 0: none do.
int64_t block_of(const at::Tensor& image) {
  return image.dim() == 5 ? image.size(4) : 0;
}

// By way of one row, which gives the strides of rows: a single block, or an image of one pixel,
// would pass for one in channels-last order, which operators treat in another way.
at::Tensor without_blocks(const at::Tensor& image) {
  const int64_t block = block_of(image);
  return block == 0 ? image
                    : image.permute({0, 1, 4, 2, 3})
                          .reshape(-1)
                          .view({image.size(0), -1, image.size(2), image.size(3)});
}

at::Tensor in_blocks(const at::Tensor& image, int64_t block) {
  return block == 0 || !image.defined()
             ? image
             : image.reshape({image.size(0), -1, block, image.size(2), image.size(3)})
                   .permute({0, 1, 3, 4, 2})
                   .clone(at::MemoryFormat::Contiguous);
}

at::Tensor convolution(const at::Tensor& input,
                       const at::Tensor& weight,
                       const c10::optional<at::Tensor>& bias,
                       at::IntArrayRef stride,
                       at::IntArrayRef padding,
                       at::IntArrayRef dilation,
                       bool transposed,
                       at::IntArrayRef output_padding,
                       int64_t groups,
                       int64_t block) {
  return in_blocks(at::convolution(without_blocks(input),
                                   weight,
                                   bias,
                                   stride,
                                   padding,
                                   dilation,
                                   transposed,
                                   output_padding,
                                   groups),
                   block);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& weight,
    at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  auto [dx, dweight, dbias] = at::convolution_backward(without_blocks(gradient),
                                                       without_blocks(input),
                                                       weight,
                                                       bias_sizes,
                                                       stride,
                                                       padding,
                                                       dilation,
                                                       transposed,
                                                       output_padding,
                                                       groups,
                                                       output_mask);
  return {in_blocks(dx, block_of(input)), dweight, dbias};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& input,
    const c10::optional<at::Tensor>& weight,
    const c10::optional<at::Tensor>& bias,
    const c10::optional<at::Tensor>& running_mean,
    const c10::optional<at::Tensor>& running_var,
    bool training,
    double momentum,
    double eps) {
  auto [normal, mean, inverse_deviation] = at::native_batch_norm(
      without_blocks(input), weight, bias, running_mean, running_var, training, momentum, eps);
  return {in_blocks(normal, block_of(input)), mean, inverse_deviation};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_backward(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const c10::optional<at::Tensor>& weight,
    const c10::optional<at::Tensor>& running_mean,
    const c10::optional<at::Tensor>& running_var,
    const c10::optional<at::Tensor>& mean,
    const c10::optional<at::Tensor>& inverse_deviation,
    bool train,
    double eps,
    std::array<bool, 3> output_mask) {
  auto [dx, dweight, dbias] = at::native_batch_norm_backward(without_blocks(gradient),
                                                             without_blocks(input),
                                                             weight,
                                                             running_mean,
                                                             running_var,
                                                             mean,
                                                             inverse_deviation,
                                                             train,
                                                             eps,
                                                             output_mask);
  return {in_blocks(dx, block_of(input)), dweight, dbias};
}

constexpr int64_t kNoRoute = 4;

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
  const int64_t block = block_of(x);
  const int64_t width = x.size(3);
  auto [normal, mean, inverse_deviation] = at::native_batch_norm(
      without_blocks(x), weight, bias, running_mean, running_var, /*training=*/true, momentum, eps);
  auto [largest, indices] = at::max_pool2d_with_indices(normal.relu_(), {2, 2});
  normal.reset();
  const at::Tensor routes = routes_of(std::move(indices), width, largest);
  return {in_blocks(largest, block), in_blocks(routes, block), mean, inverse_deviation};
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
  const at::Tensor image = without_blocks(x);
  auto [dx, dweight, dbias] = at::native_batch_norm_backward(
      spread(without_blocks(gradient), without_blocks(routes), image),
      image,
      weight,
      /*running_mean=*/{},
      /*running_var=*/{},
      mean,
      inverse_deviation,
      /*train=*/true,
      eps,
      {true, true, true});
  return {in_blocks(dx, block_of(x)), dweight, dbias};
}

// What these operators take while they run. Images in blocks are copied to be computed on.

using Shapes = std::vector<TensorShape>;

int64_t bytes_of_copy(const TensorShape& image) {
  return image.sizes.size() == 5 && image.sizes[4] > 0 ? image.bytes() : 0;
}

int64_t scratch_of_mm_to(const Shapes& arguments, const Shapes&) {
  return arguments[0].bytes();
}

int64_t scratch_of_cross_entropy(const Shapes&, const Shapes& results) {
  return results[0].bytes();
}

int64_t scratch_of_convolution(const Shapes& arguments, const Shapes& results) {
  return bytes_of_copy(arguments[0]) + bytes_of_copy(results[0]);
}

int64_t scratch_of_batch_norm(const Shapes& arguments, const Shapes&) {
  return bytes_of_copy(arguments[0]);
}

int64_t scratch_of_two_images(const Shapes& arguments, const Shapes&) {
  return bytes_of_copy(arguments[0]) + bytes_of_copy(arguments[1]);
}

int64_t scratch_of_pool(const Shapes& arguments, const Shapes& results) {
  const int64_t index_bytes = 8 * results[1].bytes();
  return arguments[0].bytes() +
         std::max(bytes_of_copy(arguments[0]), index_bytes + bytes_of_copy(results[0]));
}

int64_t scratch_of_pool_backward(const Shapes& arguments, const Shapes&) {
  return arguments[2].bytes() + bytes_of_copy(arguments[0]) + bytes_of_copy(arguments[2]);
}

OperatorFacts facts_of(const char* schema, ScratchBytes scratch) {
  OperatorFacts facts{schema};
  facts.scratch_bytes = std::move(scratch);
  return facts;
}

}  // namespace

void define_fused_operators(torch::Library& library) {
  const auto define = [&](const char* schema, ScratchBytes scratch, auto* function) {
    define_operator(library, facts_of(schema, std::move(scratch)), function);
  };
  define("rondo::mm_to_(Tensor(a!) target, Tensor a, Tensor b, bool adds) -> ()",
         &scratch_of_mm_to,
         &mm_to_);
  define(
      "rondo::gradients_of_parts(Tensor[] gradients, int[] sizes, int dim, int[] starts) -> "
      "Tensor",
      nullptr,
      &gradients_of_parts);
  define(
      "rondo::cross_entropy_backward(Tensor gradient, Tensor logarithms, Tensor labels, "
      "int ignored, Tensor weight) -> Tensor",
      &scratch_of_cross_entropy,
      &cross_entropy_backward);
  define(
      "rondo::convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, "
      "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, "
      "int block) -> Tensor",
      &scratch_of_convolution,
      &convolution);
  define(
      "rondo::convolution_backward(Tensor gradient, Tensor input, Tensor weight, "
      "int[]? bias_sizes, int[] stride, int[] padding, int[] dilation, bool transposed, "
      "int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      &scratch_of_two_images,
      &convolution_backward);
  define(
      "rondo::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, "
      "Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
      "Tensor)",
      &scratch_of_batch_norm,
      &batch_norm);
  define(
      "rondo::batch_norm_backward(Tensor gradient, Tensor input, Tensor? weight, "
      "Tensor? running_mean, Tensor? running_var, Tensor? mean, Tensor? inverse_deviation, "
      "bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      &scratch_of_two_images,
      &batch_norm_backward);
  define(
      "rondo::batch_norm_relu_pool(Tensor x, Tensor weight, Tensor bias, "
      "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> "
      "(Tensor largest, Tensor routes, Tensor mean, Tensor inverse_deviation)",
      &scratch_of_pool,
      &batch_norm_relu_pool);
  define(
      "rondo::batch_norm_relu_pool_backward(Tensor gradient, Tensor routes, Tensor x, "
      "Tensor weight, Tensor mean, Tensor inverse_deviation, float eps) -> (Tensor, Tensor, "
      "Tensor)",
      &scratch_of_pool_backward,
      &batch_norm_relu_pool_backward);
}

}  // namespace rondo
