#include "loops/step_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <typeinfo>

#include "callbacks/core/precision_callback.h"
#include "callbacks/core/schedulers_callback.h"
#include "callbacks/core/sparsity_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "loops/backward_error.h"
#include "loops/train_step.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Those that backward reaches: a parameter may have been frozen since it was taken.
std::vector<at::Tensor> trained(const Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : optimizer.trained()) {
    if (parameter.second.requires_grad()) {
      parameters.push_back(parameter.second);
    }
  }
  return parameters;
}

std::vector<at::Tensor> defined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> found;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(found), [](const at::Tensor& t) {
    return t.defined();
  });
  return found;
}

}  // namespace

namespace detail {

void throw_other_model(const Trainer& trainer, const std::type_info& expected) {
  throw UsageError(fmt::format("the step needs the model {}, but the run's is {}",
                               class_name(expected),
                               trainer.options().model.name()));
}

}  // namespace detail

Outputs StepContext::forward(const Batch& batch, const ForwardCall& run) {
  return forward_pass(trainer_, batch, run);
}

void StepContext::backward(Outputs& outputs, const std::vector<std::string>& optimizers) {
  std::vector<at::Tensor> inputs;
  for (const std::string& name : optimizers) {
    const std::vector<at::Tensor> own = trained(optimizer(name));
    inputs.insert(inputs.end(), own.begin(), own.end());
  }
  if (const VirtualRanks* const ranks = ranks_of(trainer_)) {
    ranks->require_no_update();
  }
  trainer_.call(hooks::on_before_backward, model(), outputs);
  if (optimizers.empty() || !inputs.empty()) {
    run_backward(trainer_.options().model.name(),
                 model().module(),
                 trainer_.step_slots().precision->scaled(loss_of(outputs, batch_)),
                 inputs);
  }
  keep_gradients();
  trainer_.call(hooks::on_after_backward, model(), outputs);
}

void StepContext::keep_gradients() {
  const VirtualRanks* const ranks = ranks_of(trainer_);
  if (position().is_last || (ranks != nullptr && ranks->ends_rank())) {
    return;
  }
  for (const auto& optimizer : trainer_.state().optimizers) {
    optimizer->keep_grads();
  }
}

std::vector<at::Tensor> StepContext::gradients(const Outputs& outputs, std::string_view name) {
  if (const VirtualRanks* const ranks = ranks_of(trainer_)) {
    ranks->require_no_update();
  }
  const Optimizer& of = optimizer(name);
  const PrecisionCallback& precision = *trainer_.step_slots().precision;
  std::vector<at::Tensor> found = run_gradients(trainer_.options().model.name(),
                                                model().module(),
                                                precision.scaled(loss_of(outputs, batch_)),
                                                trained(of));
  if (precision.scaler() != nullptr) {
    precision.scaler()->unscale_(defined(found));
  }
  std::vector<at::Tensor> gradients;
  auto next = found.begin();
  const SparsityCallback& sparsity = *trainer_.step_slots().sparsity;
  for (const NamedTensor& parameter : of.trained()) {
    gradients.push_back(parameter.second.requires_grad()
                            ? sparsity.masked(*next++, parameter.second)
                            : at::Tensor());
  }
  return gradients;
}

void StepContext::optimizer_step(std::string_view name, const Optimizer::Evaluate& evaluate) {
  if (!position().is_last) {
    return;
  }
  Optimizer& stepping = optimizer(name);
  if (VirtualRanks* const ranks = ranks_of(trainer_)) {
    ranks->sum_gradients(trainer_, stepping);
  }
  std::optional<NameScope> scope;  // metrics of one of several have its name in front
  if (trainer_.state().optimizers.size() > 1) {
    scope.emplace(trainer_.metric_log().scopes(), stepping.name());
  }
  const StepSlots& slots = trainer_.step_slots();
  trainer_.call(hooks::on_before_optimizer_step, model(), stepping);
  slots.sparsity->before_update(stepping);
  slots.precision->clip_gradients(stepping);
  slots.precision->step(stepping, evaluate);
  slots.sparsity->after_update(stepping);
  trainer_.call(hooks::on_after_optimizer_step, model(), stepping);
}

void StepContext::optimizer_zero_grad(std::string_view name) {
  if (!position().is_last) {
    return;
  }
  Optimizer& cleared = optimizer(name);
  trainer_.call(hooks::on_before_optimizer_zero_grad, model(), cleared);
  cleared.zero_grad();
  trainer_.call(hooks::on_after_optimizer_zero_grad, model(), cleared);
}

void StepContext::schedulers_step(std::string_view name) {
  if (position().is_last) {
    trainer_.step_slots().schedulers->step(trainer_, optimizer(name));
  }
}

void StepContext::update(std::string_view name, const Optimizer::Evaluate& evaluate) {
  optimizer_step(name, evaluate);
  optimizer_zero_grad(name);
  schedulers_step(name);
}

std::string StepContext::kind() const {
  return trainer_.step_slots().step->kind(trainer_.state());
}

void StepContext::update_all() {
  for (const auto& optimizer : trainer_.state().optimizers) {
    update(optimizer->name());
  }
}

const GroupPosition& StepContext::position() const {
  return trainer_.state().position;
}

Model& StepContext::model() const {
  return *trainer_.state().model;
}

Optimizer& StepContext::optimizer(std::string_view name) const {
  return trainer_.state().optimizer_named(name);
}

}  // namespace rondo
