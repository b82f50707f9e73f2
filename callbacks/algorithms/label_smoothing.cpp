#include "callbacks/algorithms/label_smoothing.h"

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

LabelSmoothing::LabelSmoothing(const Options& options) : options_(options) {
  detail::require(options.smoothing >= 0 && options.smoothing <= 1,
                  "LabelSmoothing: smoothing",
                  "in [0, 1]",
                  options.smoothing);
}

bool LabelSmoothing::match(Event event, const State&) const {
  return event == Event::BeforeLoss;
}

void LabelSmoothing::apply(Event, Trainer& trainer) {
  State& state = trainer.state();
  detail::require_open_loss(*state.outputs, "LabelSmoothing");
  const at::Tensor& logits = (*state.outputs)[options_.output];
  const at::Tensor shares = detail::shares_of((*state.batch)[options_.target], logits);
  const double all = options_.smoothing / static_cast<double>(logits.size(-1));
  state.batch->set(options_.target, shares.mul(1.0 - options_.smoothing).add(all));
}

void register_label_smoothing(Registry<Algorithm>& registry) {
  using Options = LabelSmoothing::Options;
  registry.add<LabelSmoothing>("LabelSmoothing", "Smooths the labels that the loss sees.")
      .key("smoothing",
           &Options::smoothing,
           between(0, 1),
           "share of a label that goes to all classes")
      .key("target", &Options::target, "name in the batch: integers, or shares of classes")
      .key("output", &Options::output, "name among the outputs of the logits");
}

}  // namespace rondo
