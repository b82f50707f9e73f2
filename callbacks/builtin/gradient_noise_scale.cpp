#include "callbacks/builtin/gradient_noise_scale.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "callbacks/core/grad_accum_callback.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// \capture safe
at::Tensor squared_norm(const Optimizer& optimizer) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& grad : optimizer.grads()) {
    norms.push_back(grad.norm());
  }
  return at::stack(norms).pow(2).sum();
}

/// Whether the batch is one of several that are alike.
bool counts(const State& state) {
  return state.position.size > 1 && !state.share_of_group;
}

}  // namespace

void GradientNoiseScale::setup(Trainer& trainer) {
  const auto options =
      at::TensorOptions().dtype(at::kFloat).device(trainer.state().backend->device());
  first_ = at::zeros({}, options);
  noise_ = at::zeros({}, options);
  signal_ = at::zeros({}, options);
}

void GradientNoiseScale::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  const GroupOptions& groups = trainer.slot<GradAccumCallback>().groups();
  if (groups.batches == 1 && !groups.micro_batch) {
    trainer.log().warning(
        "GradientNoiseScale logs nothing: it compares a batch with its group, and an update takes "
        "one batch. Set loop.grad_accum_steps or loop.device_train_microbatch_size");
  }
  if (ranks_of(trainer) != nullptr) {
    throw UsageError(
        "GradientNoiseScale compares a batch with its group, which virtual ranks split: remove it, "
        "or set distributed.virtual_ranks = 1 with one process");
  }
  if (trainer.state().optimizers.size() > 1) {
    throw UsageError("GradientNoiseScale needs a run with one optimizer; this run has several");
  }
}

void GradientNoiseScale::on_train_step_start(Trainer&, Model&, const Batch& batch) {
  batch_size_ = batch.size();
}

void GradientNoiseScale::on_after_backward(Trainer& trainer, Model&, Outputs&) {
  const State& state = trainer.state();
  if (!counts(state) || !state.position.is_first || state.optimizer->grads().empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  const auto size = static_cast<double>(state.position.size);  // by which the loss was divided
  at::Tensor norm = squared_norm(*state.optimizer).mul(size * size);
  if (const GradScaler* const scaler = trainer.step_slots().precision->scaler()) {
    norm = norm.div(scaler->scale().pow(2));
  }
  first_.copy_(norm);
}

void GradientNoiseScale::on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  const State& state = trainer.state();
  if (!counts(state) || optimizer.grads().empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  const auto small = static_cast<double>(batch_size_);
  const double big = small * static_cast<double>(state.position.size);
  const at::Tensor group = squared_norm(optimizer);
  const at::Tensor signal = group.mul(big).sub(first_.mul(small)).div(big - small);
  const at::Tensor noise = first_.sub(group).div(1.0 / small - 1.0 / big);
  signal_.mul_(options_.smoothing).add_(signal.mul(1.0 - options_.smoothing));
  noise_.mul_(options_.smoothing).add_(noise.mul(1.0 - options_.smoothing));
  trainer.log_metrics({{"gradient_noise_scale", noise_.div(signal_)}});
}

NamedTensors GradientNoiseScale::captured_state() {
  return {{"first", first_}, {"noise", noise_}, {"signal", signal_}};
}

void register_gradient_noise_scale(Registry<Callback>& registry) {
  registry
      .add<GradientNoiseScale>("GradientNoiseScale",
                               "Logs from which batch size on larger batches stop paying.")
      .key("smoothing",
           &GradientNoiseScale::Options::smoothing,
           below_one(),
           "of the moving averages that it is made of");
}

}  // namespace rondo
