#include "callbacks/algorithms/cut_mix.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/where.h>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// True in a stretch of `side`, a share, of `size` pixels, around a place that is drawn: bool
/// [size].
at::Tensor is_cut(int64_t size, const at::Tensor& side) {
  const auto pixels = static_cast<double>(size);
  const at::Tensor half = side.mul(pixels).floor().div(2, "floor");
  const at::Tensor center = at::rand({}, side.options()).mul(pixels).floor();
  const at::Tensor at = at::arange(size, side.options());
  return at.ge(center - half).logical_and(at.lt(center + half));
}

}  // namespace

CutMix::CutMix(const Options& options) : options_(options) {
  detail::require(options.alpha > 0, "CutMix: alpha", "> 0", options.alpha);
}

bool CutMix::match(Event event, const State&) const {
  return event == Event::BeforeForward || event == Event::BeforeLoss;
}

void CutMix::apply(Event event, Trainer& trainer) {
  State& state = trainer.state();
  if (event == Event::BeforeForward) {
    const at::Tensor samples = (*state.batch)[options_.input];
    detail::require_images(samples, "CutMix");
    const at::Tensor side = (1.0 - detail::random_beta(options_.alpha, samples.device())).sqrt();
    const at::Tensor rows = is_cut(samples.size(2), side);
    const at::Tensor columns = is_cut(samples.size(3), side);
    const at::Tensor is_pasted = rows.unsqueeze(1).logical_and(columns);
    kept_ = 1.0 - is_pasted.to(at::kDouble).mean();
    order_ = at::randperm(samples.size(0), samples.options().dtype(at::kLong));
    state.batch->set(options_.input,
                     at::where(is_pasted, detail::reordered(samples, order_), samples));
  } else {
    detail::require_open_loss(*state.outputs, "CutMix");
    const at::Tensor& logits = (*state.outputs)[options_.output];
    const at::Tensor all = detail::shares_of((*state.batch)[options_.target], logits);
    const at::Tensor kept = kept_.to(all.scalar_type());
    state.batch->set(options_.target,
                     all.mul(kept).add(detail::reordered(all, order_).mul(1.0 - kept)));
    order_.reset();
    kept_.reset();
  }
}

void register_cut_mix(Registry<Algorithm>& registry) {
  using Options = CutMix::Options;
  registry
      .add<CutMix>("CutMix",
                   "Pastes rectangles of other samples into each one, and mixes their labels.")
      .key("alpha",
           &Options::alpha,
           greater_than(0),
           "of the Beta distribution of the area that is kept")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]")
      .key("target", &Options::target, "name in the batch: integers, or shares of classes")
      .key("output", &Options::output, "name among the outputs of the logits");
}

}  // namespace rondo
