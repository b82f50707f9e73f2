#include "loops/train_step.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "callbacks/core/forward_pass.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "loops/step_context.h"
#include "loops/validation_hooks.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void drop_gradients(Trainer& trainer) {
  for (const auto& optimizer : trainer.state().optimizers) {
    optimizer->zero_grad();
  }
}

}  // namespace

NamedTensors TrainStep::captured_state() {
  NamedTensors all = tensors();
  NamedTensors read = constants();
  all.insert(all.end(), read.begin(), read.end());
  return all;
}

StateDict TrainStep::save_state() const {
  StateDict state;
  for (const NamedTensor& tensor : tensors()) {
    state.set(tensor.first, tensor.second.detach());
  }
  return state;
}

void TrainStep::load_state(const StateDict& state) {
  std::vector<std::pair<at::Tensor, at::Tensor>> transfers;
  for (const NamedTensor& tensor : tensors()) {
    const StateValue* const saved = state.find(tensor.first);
    const std::string expected = StateValue(tensor.second).kind();
    const std::string found = saved != nullptr ? saved->kind() : "nothing";
    if (found != expected) {
      throw CheckpointError(
          fmt::format("\"{}\": expected {}, found {}", tensor.first, expected, found));
    }
    transfers.emplace_back(tensor.second.detach(), saved->as_tensor());
  }
  const at::NoGradGuard no_grad;
  for (const auto& [to, from] : transfers) {
    to.copy_(from);
  }
}

std::string TrainStep::state_subject() const {
  return class_name(typeid(*this));
}

Outputs train_step(Trainer& trainer, const Batch& batch) {
  Model& model = *trainer.state().model;
  const GroupPosition position = trainer.state().position;
  VirtualRanks* const ranks = ranks_of(trainer);
  if (position.is_first) {
    drop_gradients(trainer);
  }
  if (ranks != nullptr) {
    ranks->begin_step(trainer);
  }
  trainer.call(hooks::on_train_step_start, model, batch);
  StepContext step(trainer, batch);
  Outputs outputs = trainer.step_slots().step->run(step, batch);
  if (ranks != nullptr) {
    ranks->end_step(trainer);
  }
  if (position.is_last || (ranks != nullptr && ranks->ends_rank())) {
    drop_gradients(trainer);  // of what did not step
  }
  trainer.call(hooks::on_train_step_end, model, outputs, batch);
  return outputs;
}

Outputs validate_step(Trainer& trainer, const Batch& batch, const std::string& hook) {
  const at::NoGradGuard no_grad;
  Model& model = *trainer.state().model;
  const ValidationHooks fire(trainer, hook);
  fire.step_start(model, batch);
  Outputs outputs = forward_pass(trainer, batch);
  fire.step_end(model, outputs, batch);
  return outputs;
}

}  // namespace rondo
