#include "callbacks/core/precision_speed.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include "callbacks/core/precision_callback.h"

namespace rondo {

namespace {

constexpr int kTrials = 4;  // the first warms up

at::Tensor weight_of(at::IntArrayRef sizes) {
  return at::full(sizes, 0.01).requires_grad_();
}

/// Computes a number from the weight.
using Network = std::function<at::Tensor(const at::Tensor& weight)>;

at::Tensor linear_network(const at::Tensor& weight) {
  constexpr int64_t kRows = 128;
  const int64_t width = weight.size(0);
  const at::Tensor hidden = at::gelu(at::linear(at::full({kRows, width}, 0.5), weight));
  return at::linear(at::layer_norm(hidden, {width}), weight).sum();
}

at::Tensor convolutional_network(const at::Tensor& weight) {
  constexpr int64_t kImages = 16;
  constexpr int64_t kPixels = 16;  // a side
  const at::Tensor x = at::full({kImages, weight.size(1), kPixels, kPixels}, 0.5);
  const at::Tensor hidden = at::relu(at::conv2d(x, weight, {}, 1, /*padding=*/1));
  return at::conv2d(hidden, weight, {}, 1, /*padding=*/1).sum();
}

/// Seconds of the fastest trial.
double seconds_of_step(std::optional<at::ScalarType> autocast,
                       const at::Tensor& weight,
                       const Network& network) {
  const OperatorPrecision as_written;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTrials; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor sum;
    {
      const PrecisionScope scope(autocast, c10::kCPU, as_written);
      sum = network(weight);
    }
    sum.backward();
    weight.mutable_grad().reset();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace

double relative_time_of_bf16(SpeedProbe probe) {
  const at::AutoGradMode with_gradients(true);
  const bool is_linear = probe == SpeedProbe::Linear;
  const at::Tensor weight = is_linear ? weight_of({256, 256}) : weight_of({32, 32, 3, 3});
  const Network network = is_linear ? linear_network : convolutional_network;
  return seconds_of_step(at::kBFloat16, weight, network) /
         seconds_of_step(std::nullopt, weight, network);
}

std::string slowness_note(const std::string& dtype, SpeedProbe probe, double relative_time) {
  constexpr double kNoise = 1.1;
  if (relative_time < kNoise) {
    return "";
  }
  return fmt::format(
      "a small {}network takes {:.1f} times as long in bf16 as in fp32 on this machine: "
      "precision.dtype = \"fp32\" may be faster than \"{}\"",
      probe == SpeedProbe::Convolutional ? "convolutional " : "",
      relative_time,
      dtype);
}

}  // namespace rondo
