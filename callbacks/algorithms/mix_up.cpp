#include "callbacks/algorithms/mix_up.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/randperm.h>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

MixUp::MixUp(const Options& options) : options_(options) {
  detail::require(options.alpha > 0, "MixUp: alpha", "> 0", options.alpha);
}

at::Tensor MixUp::mixed(const at::Tensor& all) const {
  const at::Tensor share = share_.to(all.scalar_type());
  return all.mul(1.0 - share).add(detail::reordered(all, order_).mul(share));
}

bool MixUp::match(Event event, const State&) const {
  return event == Event::BeforeForward || event == Event::BeforeLoss;
}

void MixUp::apply(Event event, Trainer& trainer) {
  State& state = trainer.state();
  if (event == Event::BeforeForward) {
    const at::Tensor samples = (*state.batch)[options_.input];
    const at::Tensor drawn = detail::random_beta(options_.alpha, samples.device());
    share_ = at::minimum(drawn, 1.0 - drawn).to(samples.scalar_type());
    order_ = at::randperm(samples.size(0), samples.options().dtype(at::kLong));
    state.batch->set(options_.input, mixed(samples));
  } else {
    detail::require_open_loss(*state.outputs, "MixUp");
    const at::Tensor& logits = (*state.outputs)[options_.output];
    state.batch->set(options_.target,
                     mixed(detail::shares_of((*state.batch)[options_.target], logits)));
    order_.reset();
    share_.reset();
  }
}

void register_mix_up(Registry<Algorithm>& registry) {
  using Options = MixUp::Options;
  registry.add<MixUp>("MixUp", "Trains on mixtures of two samples and of their labels.")
      .key("alpha",
           &Options::alpha,
           greater_than(0),
           "of the Beta distribution that the share is drawn from")
      .key("input", &Options::input, "name in the batch: floating [B, channels, height, width]")
      .key("target", &Options::target, "name in the batch: integers, or shares of classes")
      .key("output", &Options::output, "name among the outputs of the logits");
}

}  // namespace rondo
