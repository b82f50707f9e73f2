#include "callbacks/algorithms/gradient_clipping.h"

#include <ATen/core/grad_mode.h>

#include "callbacks/algorithms/internal/samples.h"
#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "optim/clip.h"
#include "trainer/trainer.h"

namespace rondo {

GradientClipping::GradientClipping(const Options& options) : options_(options) {
  detail::require(options.clipping_type == "norm" || options.clipping_type == "value" ||
                      options.clipping_type == "adaptive",
                  "GradientClipping: clipping_type",
                  "\"norm\", \"value\" or \"adaptive\"",
                  options.clipping_type);
  detail::require(options.clipping_threshold > 0,
                  "GradientClipping: clipping_threshold",
                  "> 0",
                  options.clipping_threshold);
}

void GradientClipping::on_before_optimizer_step(Trainer&, Model&, Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  if (options_.clipping_type == "norm") {
    clip_by_norm_(optimizer.grads(), options_.clipping_threshold);
  } else if (options_.clipping_type == "value") {
    clip_by_value_(optimizer.grads(), options_.clipping_threshold);
  } else {
    clip_by_ratio_(optimizer.trained(), options_.clipping_threshold);
  }
}

void register_gradient_clipping(Registry<Algorithm>& registry) {
  using Options = GradientClipping::Options;
  registry.add<GradientClipping>("GradientClipping", "Clips the gradients of an update.")
      .key("clipping_type",
           &Options::clipping_type,
           one_of({"norm", "value", "adaptive"}),
           "clip the joint norm, each value, or each unit by its weights")
      .key("clipping_threshold",
           &Options::clipping_threshold,
           greater_than(0),
           "largest norm or value, or ratio to the norm of the weights");
}

}  // namespace rondo
