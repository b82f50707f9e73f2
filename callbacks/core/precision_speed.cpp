#include "callbacks/core/precision_speed.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "callbacks/core/precision_callback.h"

namespace rondo {

namespace {

constexpr int64_t kRows = 128;
constexpr int64_t kWidth = 256;
constexpr int kTrials = 4;  // the first warms up

/// Seconds of the fastest trial.
double seconds_of_step(std::optional<at::ScalarType> autocast) {
  const at::Tensor x = at::full({kRows, kWidth}, 0.5);
  const at::Tensor weight = at::full({kWidth, kWidth}, 0.01).requires_grad_();
  const OperatorPrecision as_written;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTrials; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    at::Tensor sum;
    {
      const PrecisionScope scope(autocast, c10::kCPU, as_written);
      const at::Tensor hidden = at::gelu(at::linear(x, weight));
      sum = at::linear(at::layer_norm(hidden, {kWidth}), weight).sum();
    }
    sum.backward();
    weight.mutable_grad().reset();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace

double relative_time_of_bf16() {
  const at::AutoGradMode with_gradients(true);
  return seconds_of_step(at::kBFloat16) / seconds_of_step(std::nullopt);
}

std::string slowness_note(const std::string& dtype, double relative_time) {
  constexpr double kNoise = 1.1;
  if (relative_time < kNoise) {
    return "";
  }
  return fmt::format(
      "a small network takes {:.1f} times as long in bf16 as in fp32 on this machine: "
      "precision.dtype = \"fp32\" may be faster than \"{}\"",
      relative_time,
      dtype);
}

}  // namespace rondo
