#include "callbacks/algorithms/rand_augment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_standard_gamma.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr double kMostSeverity = 10.0;
constexpr double kMostShear = 0.3;
constexpr double kMostShift = 0.9;     // of half a side
constexpr double kMostAngle = 0.5236;  // 30 degrees
constexpr double kMostLight = 0.9;
constexpr int64_t kLongestChain = 3;

enum Operation { ShearX, ShearY, ShiftX, ShiftY, Rotate, Brightness, Contrast, Solarize, Sharpen };

constexpr int64_t kOperations = 9;

/// A number in [0, 1) for each picture: [B, 1, 1, 1].
at::Tensor numbers(const at::Tensor& images) {
  return at::rand({images.size(0), 1, 1, 1}, images.options());
}

/// The pictures whose operation is one that moves pixels. \param amount  in [-1, 1], [B, 1, 1, 1]
at::Tensor moved(const at::Tensor& images, const at::Tensor& chosen, const at::Tensor& amount) {
  const auto of = [&](Operation operation, double most) {
    return (amount * chosen.eq(static_cast<int64_t>(operation)).to(amount.scalar_type()) * most)
        .flatten();
  };
  const at::Tensor angle = of(Rotate, kMostAngle);
  const at::Tensor first =
      at::stack({angle.cos(), of(ShearX, kMostShear) - angle.sin(), of(ShiftX, kMostShift)}, 1);
  const at::Tensor second =
      at::stack({of(ShearY, kMostShear) + angle.sin(), angle.cos(), of(ShiftY, kMostShift)}, 1);
  const at::Tensor grid = at::affine_grid_generator(
      at::stack({first, second}, 1), images.sizes(), /*align_corners=*/false);
  return at::grid_sampler(
      images, grid, /*bilinear*/ 0, /*zeros outside*/ 0, /*align_corners=*/false);
}

/// Each picture by one operation that is drawn for it, by an amount up to `strength`, in [0, 1].
at::Tensor changed(const at::Tensor& images, double strength) {
  const at::Tensor chosen = numbers(images).mul(static_cast<double>(kOperations)).floor();
  const at::Tensor amount = numbers(images).mul(2.0).sub(1.0).mul(strength);
  const auto is = [&](Operation operation) { return chosen.eq(static_cast<int64_t>(operation)); };
  const at::Tensor light = amount.mul(kMostLight).add(1.0);
  const at::Tensor mean = images.mean({1, 2, 3}, /*keepdim=*/true);
  const at::Tensor smooth = at::avg_pool2d(images, {3, 3}, {1, 1}, {1, 1});
  at::Tensor result =
      at::where(chosen.le(static_cast<int64_t>(Rotate)), moved(images, chosen, amount), images);
  result = at::where(is(Brightness), images * light, result);
  result = at::where(is(Contrast), (images - mean) * light + mean, result);
  result = at::where(is(Solarize).logical_and(images.gt(1.0 - amount.abs())), 1.0 - images, result);
  return at::where(is(Sharpen), images + (images - smooth) * amount * kMostLight, result);
}

void require_severity(const char* option, double severity) {
  detail::require(severity >= 0 && severity <= kMostSeverity, option, "in [0, 10]", severity);
}

}  // namespace

RandAugment::RandAugment(const Options& options) : options_(options) {
  require_severity("RandAugment: severity", options.severity);
  detail::require(options.depth >= 1, "RandAugment: depth", ">= 1", options.depth);
}

void RandAugment::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  at::Tensor images = batch[options_.input];
  detail::require_images(images, "RandAugment");
  for (int64_t i = 0; i < options_.depth; ++i) {
    images = changed(images, options_.severity / kMostSeverity);
  }
  batch.set(options_.input, images);
}

AugMix::AugMix(const Options& options) : options_(options) {
  require_severity("AugMix: severity", options.severity);
  detail::require(
      options.depth >= 1 || options.depth == -1, "AugMix: depth", ">= 1 or -1", options.depth);
  detail::require(options.width >= 1, "AugMix: width", ">= 1", options.width);
  detail::require(options.alpha > 0, "AugMix: alpha", "> 0", options.alpha);
}

void AugMix::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  const at::Tensor images = batch[options_.input];
  detail::require_images(images, "AugMix");
  const auto shape = images.options().dtype(at::kDouble);
  const at::Tensor drawn =
      at::_standard_gamma(at::full({images.size(0), options_.width}, options_.alpha, shape));
  const at::Tensor shares = drawn.div(drawn.sum(1, /*keepdim=*/true)).to(images.scalar_type());
  at::Tensor mixture = images.mul(0.0);
  for (int64_t chain = 0; chain < options_.width; ++chain) {
    at::Tensor links = images;
    const int64_t longest = options_.depth > 0 ? options_.depth : kLongestChain;
    const at::Tensor length = numbers(images).mul(static_cast<double>(kLongestChain)).floor();
    for (int64_t i = 0; i < longest; ++i) {
      const at::Tensor next = changed(links, options_.severity / kMostSeverity);
      links = options_.depth > 0 ? next : at::where(length.ge(i), next, links);
    }
    mixture = mixture + links * shares.select(1, chain).reshape({-1, 1, 1, 1});
  }
  const at::Tensor kept =
      detail::random_beta(options_.alpha, images.device()).to(images.scalar_type());
  batch.set(options_.input, images * kept + mixture * (1.0 - kept));
}

void register_rand_augment(Registry<Algorithm>& registry) {
  registry.add<RandAugment>("RandAugment", "Changes each training picture by drawn operations.")
      .key("severity", &RandAugment::Options::severity, between(0, 10), "how strong they are")
      .key("depth", &RandAugment::Options::depth, at_least(1), "operations of a picture")
      .key("input",
           &RandAugment::Options::input,
           "name in the batch: floating [B, channels, height, width], values in [0, 1]");
  registry.add<AugMix>("AugMix", "Mixes training pictures with chains of drawn operations.")
      .key("severity", &AugMix::Options::severity, between(0, 10), "how strong they are")
      .key("depth", &AugMix::Options::depth, "operations of a chain; -1: 1 to 3, drawn")
      .key("width", &AugMix::Options::width, at_least(1), "chains of a picture")
      .key("alpha",
           &AugMix::Options::alpha,
           greater_than(0),
           "of the distributions of the chains' shares")
      .key("input",
           &AugMix::Options::input,
           "name in the batch: floating [B, channels, height, width], values in [0, 1]");
}

}  // namespace rondo
