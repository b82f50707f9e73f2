#include "models/builtin/diffusion.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/silu.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <memory>
#include <utility>

#include "core/require.h"
#include "models/blocks/next_token.h"
#include "models/blocks/u_net_body.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

/// Share of the image's variance that is left after each step, float64 [steps].
at::Tensor shares_left(const Diffusion::Options& options) {
  const at::Tensor steps = at::arange(1, options.steps + 1, at::kDouble);
  const auto count = static_cast<double>(options.steps);
  if (options.schedule == "linear") {
    // The paper's are for 1,000 steps.
    const double scale = 1000.0 / count;
    const at::Tensor beta = at::linspace(1e-4 * scale, 0.02 * scale, options.steps, at::kDouble);
    return (1 - beta.clamp_max(0.999)).cumprod(0);
  }
  constexpr double kOffset = 0.008;
  constexpr double kHalfPi = 1.5707963267948966;
  const at::Tensor angle = (steps / count + kOffset) / (1 + kOffset) * kHalfPi;
  const double first = std::cos(kOffset / (1 + kOffset) * kHalfPi);
  return (angle.cos() / first).square().clamp_min(1e-5);
}

/// Sines and cosines of the steps, [B, width].
at::Tensor waves(const at::Tensor& step, int64_t width) {
  const int64_t half = width / 2;
  const auto numbers = step.options().dtype(at::kFloat);
  const at::Tensor speed =
      (at::arange(half, numbers) * (-std::log(10000.0) / static_cast<double>(half))).exp();
  const at::Tensor angle = step.to(at::kFloat).unsqueeze(1) * speed;
  return at::cat({angle.sin(), angle.cos()}, 1);
}

detail::UNetBody::Options body_of(const Diffusion::Options& options) {
  Diffusion::check(options);
  return {/*dims=*/2,
          options.channels,
          options.channels,
          options.width,
          options.depth,
          "group",
          /*time_width=*/4 * options.width};
}

class DiffusionNetwork final : public ModuleModel {
 public:
  explicit DiffusionNetwork(const Diffusion::Options& options)
      : options_(options),
        body_(register_module("body", std::make_shared<detail::UNetBody>(body_of(options)))),
        time1_(register_module("time1", torch::nn::Linear(options.width, 4 * options.width))),
        time2_(register_module("time2", torch::nn::Linear(4 * options.width, 4 * options.width))),
        left_(register_buffer("left", shares_left(options).to(at::kFloat))),
        noise_(register_buffer(
            "noise", at::randn({options.channels, options.image_size, options.image_size}))) {}

  Outputs forward(const Batch& batch) override {
    const at::Tensor& image = batch["image"];
    detail::require_halvable("Diffusion", image, body_of(options_));
    const int64_t count = image.size(0);
    const at::Tensor share = is_training() ? at::rand({count}, image.options())
                                           : (at::arange(count, image.options()) + 0.5) / count;
    const at::Tensor step = (share * options_.steps).to(at::kLong).clamp_max(options_.steps - 1);
    const at::Tensor noise =
        is_training() ? at::randn_like(image) : noise_.to(image.scalar_type()).expand_as(image);
    const at::Tensor left = left_.index_select(0, step).view({-1, 1, 1, 1}).to(image.scalar_type());
    const at::Tensor mixed = (image * 2 - 1) * left.sqrt() + noise * (1 - left).sqrt();
    const at::Tensor prediction = noise_in(mixed, step);
    return {{"loss", at::mse_loss(prediction, noise)}, {"prediction", prediction}};
  }

  at::Tensor sample(int64_t count, uint64_t seed);

 private:
  at::Tensor noise_in(const at::Tensor& x, const at::Tensor& step) {
    const at::Tensor time = waves(step, options_.width).to(x.scalar_type());
    return body_->forward(x, at::silu(time2_(at::silu(time1_(time)))));
  }

  Diffusion::Options options_;
  std::shared_ptr<detail::UNetBody> body_;
  torch::nn::Linear time1_;
  torch::nn::Linear time2_;
  at::Tensor left_;   // float32 [steps]
  at::Tensor noise_;  // of evaluations, [channels, H, W]
};

// Algorithm 2 of the paper, with the variance of a step that ends at an image, and with images kept
// within their range.
at::Tensor DiffusionNetwork::sample(int64_t count, uint64_t seed) {
  const at::NoGradGuard no_grad;
  const detail::EvalMode eval_mode(*this);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const std::vector<int64_t> shape = {
      count, options_.channels, options_.image_size, options_.image_size};
  const auto draw = [&] {
    return at::randn(shape, generator, at::TensorOptions()).to(left_.device());
  };
  at::Tensor x = draw();
  for (int64_t i = options_.steps - 1; i >= 0; --i) {
    const at::Tensor step = at::arange(i, i + 1, left_.options().dtype(at::kLong)).expand({count});
    const double left = left_[i].item<double>();
    const double before = i > 0 ? left_[i - 1].item<double>() : 1.0;
    const at::Tensor noise = noise_in(x, step);
    const at::Tensor image = ((x - noise * std::sqrt(1 - left)) / std::sqrt(left)).clamp(-1.0, 1.0);
    const double beta = 1 - left / before;
    x = image * (std::sqrt(before) * beta / (1 - left)) +
        x * (std::sqrt(1 - beta) * (1 - before) / (1 - left));
    if (i > 0) {
      x = x + draw() * std::sqrt(beta * (1 - before) / (1 - left));
    }
  }
  return (x + 1) / 2;
}

}  // namespace

void Diffusion::check(const Options& options) {
  detail::require(options.channels >= 1, "Diffusion: channels", ">= 1", options.channels);
  detail::require(
      options.depth >= 1 && options.depth <= 8, "Diffusion: depth", "in [1, 8]", options.depth);
  detail::require(
      options.image_size >= 1 && options.image_size % (int64_t{1} << options.depth) == 0,
      "Diffusion: image_size",
      fmt::format("a positive multiple of {}, 2 to the depth", 1 << options.depth),
      options.image_size);
  detail::require(options.width >= 8 && options.width % 8 == 0,
                  "Diffusion: width",
                  "a positive multiple of 8",
                  options.width);
  detail::require(options.steps >= 2, "Diffusion: steps", ">= 2", options.steps);
  detail::require(options.schedule == "cosine" || options.schedule == "linear",
                  "Diffusion: schedule",
                  "\"cosine\" or \"linear\"",
                  options.schedule);
}

Diffusion::Diffusion(const Options& options)
    : WrappedModel(std::make_unique<DiffusionNetwork>(options)) {}

at::Tensor Diffusion::sample(int64_t count, uint64_t seed) {
  detail::require(count >= 1, "Diffusion: count", ">= 1", count);
  return static_cast<DiffusionNetwork&>(module()).sample(count, seed);
}

void register_diffusion(Registry<Model>& registry) {
  using Options = Diffusion::Options;
  registry.add<Diffusion>("Diffusion", "Learns to make small images out of noise.")
      .key("channels", &Options::channels, at_least(1), "colours of an image")
      .key("image_size", &Options::image_size, at_least(1), "pixels a side")
      .key("width", &Options::width, at_least(8), "channels of the first level, a multiple of 8")
      .key("depth", &Options::depth, between(1, 8), "times that the size is halved")
      .key("steps", &Options::steps, at_least(2), "from an image to noise")
      .key("schedule", &Options::schedule, one_of({"cosine", "linear"}), "how the noise grows");
}

}  // namespace rondo
