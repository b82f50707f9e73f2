#include "callbacks/algorithms/cut_out.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>

#include <algorithm>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// True in `side` pixels of `size` around a place that is drawn: bool [size].
at::Tensor is_cut(const at::Tensor& images, int64_t size, int64_t side) {
  const auto numbers = images.options().dtype(at::kDouble);
  const int64_t half = side / 2;
  const at::Tensor first =
      at::rand({}, numbers).mul(static_cast<double>(size)).floor() - static_cast<double>(half);
  const at::Tensor at = at::arange(size, numbers);
  return at.ge(first).logical_and(at.lt(first + static_cast<double>(side)));
}

}  // namespace

CutOut::CutOut(const Options& options) : options_(options) {
  detail::require(options.num_holes >= 1, "CutOut: num_holes", ">= 1", options.num_holes);
  detail::require(
      options.length >= 0 && options.length <= 1, "CutOut: length", "in [0, 1]", options.length);
}

bool CutOut::match(Event event, const State&) const {
  return event == Event::BeforeForward;
}

void CutOut::apply(Event, Trainer& trainer) {
  Batch& batch = *trainer.state().batch;
  at::Tensor images = batch[options_.input];
  detail::require_images(images, "CutOut");
  const auto shorter = static_cast<double>(std::min(images.size(2), images.size(3)));
  const auto side = static_cast<int64_t>(options_.length * shorter);
  for (int64_t hole = 0; hole < options_.num_holes; ++hole) {
    const at::Tensor rows = is_cut(images, images.size(2), side);
    const at::Tensor columns = is_cut(images, images.size(3), side);
    images = images.masked_fill(rows.unsqueeze(1).logical_and(columns), 0);
  }
  batch.set(options_.input, images);
}

void register_cut_out(Registry<Algorithm>& registry) {
  using Options = CutOut::Options;
  registry.add<CutOut>("CutOut", "Sets squares of training pictures to zero.")
      .key("num_holes", &Options::num_holes, at_least(1), "squares of a picture")
      .key("length",
           &Options::length,
           between(0, 1),
           "side of a square as a share of the shorter side")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]");
}

}  // namespace rondo
