#include "loops/steps/sam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "loops/step_context.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

// Keeps a gradient of zero from being divided by its norm, as the authors' code does.
constexpr double kEpsilon = 1e-12;

/// A parameter that was moved, with what it was.
struct Moved {
  at::Tensor parameter;
  at::Tensor before;
};

/// Moves the parameters up the loss, by `rho` in all.
std::vector<Moved> climb(const NamedTensors& parameters,
                         const std::vector<at::Tensor>& gradients,
                         double rho) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) {
      norms.push_back(gradient.norm());
    }
  }
  std::vector<Moved> moved;
  if (norms.empty()) {
    return moved;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor factor = at::stack(norms).norm().add(kEpsilon).reciprocal().mul(rho);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) {
      at::Tensor parameter = parameters[i].second;
      moved.push_back({parameter, parameter.clone()});
      parameter.add_(gradients[i].mul(factor));
    }
  }
  return moved;
}

void go_back(const std::vector<Moved>& moved) {
  const at::NoGradGuard no_grad;
  for (const Moved& one : moved) {
    at::Tensor parameter = one.parameter;
    parameter.copy_(one.before);
  }
}

}  // namespace

void Sam::setup(Trainer& trainer) {
  const std::vector<NamedOptimizer>& optimizers = trainer.options().optimizers;
  if (optimizers.size() > 1) {
    throw UsageError(fmt::format(
        "Sam trains with one optimizer, since it moves all weights by one norm together, and this "
        "run has {}: set optimizer, with groups in its params, or leave out step = \"Sam\"",
        optimizers.size()));
  }
}

Outputs Sam::run(StepContext& step, const Batch& batch) {
  const Outputs outputs = step.forward(batch);
  const std::vector<at::Tensor> gradients = step.gradients(outputs);
  const std::vector<Moved> moved = climb(step.optimizer().trained(), gradients, options_.rho);
  Outputs above = step.forward(batch);
  step.backward(above);
  go_back(moved);
  step.update();
  return outputs;
}

void register_sam(Registry<TrainStep>& registry) {
  registry
      .add<Sam>("Sam",
                "Sharpness-aware minimisation: gradients at weights where the loss is higher.")
      .key("rho", &Sam::Options::rho, greater_than(0), "how far away those weights are, L2");
}

}  // namespace rondo
