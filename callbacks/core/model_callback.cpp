#include "callbacks/core/model_callback.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "core/glob.h"
#include "models/model_state.h"
#include "models/module_dtype.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool is_strict(const Trainer& trainer) {
  return !trainer.options().checkpoint.disable_strict_checkpoint_loading;
}

/// Gives a module and its parts, which may have modes of their own, the modes that they have now.
std::function<void()> giving_back_modes(torch::nn::Module& module) {
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    parts.emplace_back(part, part->is_training());
  }
  return [&module, parts = std::move(parts), was_training = module.is_training()] {
    module.train(was_training);
    for (const auto& [part, mode] : parts) {
      part->train(mode);  // also what lies in it, which comes later
    }
  };
}

/// Gives all processes the model of the first.
void take_from_first(Communicator& communicator, torch::nn::Module& module) {
  if (communicator.world_size() == 1) {
    return;
  }
  const at::NoGradGuard no_grad;
  NamedTensors tensors = named_parameters(module);
  const NamedTensors buffers = named_buffers(module);
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  for (const NamedTensor& tensor : tensors) {
    at::Tensor values = tensor.second.detach().contiguous().cpu();
    communicator.broadcast(values, 0);
    if (!values.is_alias_of(tensor.second)) {
      tensor.second.copy_(values);
    }
  }
}

/// \throws UsageError  for a glob that matches nothing
void freeze(const torch::nn::Module& module, const std::vector<std::string>& globs) {
  const NamedTensors parameters = named_parameters(module);
  for (const std::string& glob : globs) {
    bool is_used = false;
    std::vector<std::string> names;
    for (const NamedTensor& parameter : parameters) {
      names.push_back(parameter.first);
      if (glob_match(glob, parameter.first)) {
        is_used = true;
        parameter.second.set_requires_grad(false);
      }
    }
    if (!is_used) {
      throw UsageError(
          fmt::format("freeze: \"{}\" matches no parameter{}", glob, suggestion(glob, names)));
    }
  }
}

}  // namespace

void ModelCallback::setup(Trainer& trainer) {
  State& state = trainer.state();
  state.model = trainer.options().model.make();
  for (const auto& change : changes_) {
    change(*state.model);
  }
  trainer.call(hooks::on_model_init, *state.model);
  const at::ScalarType dtype = trainer.step_slots().precision->dtype_of_weights();
  if (dtype != at::kFloat) {
    set_floating_dtype(state.model->module(), dtype);
  }
  state.model->module().to(state.backend->device());
  take_from_first(*state.communicator, state.model->module());
  freeze(state.model->module(), trainer.options().freeze);
}

void ModelCallback::on_train_start(Trainer&, Model& model, const DataLoader&, Loop&, int64_t) {
  model.module().train();
}

void ModelCallback::on_enter_validate(Trainer& trainer,
                                      Cleanup& cleanup,
                                      const DataLoader&,
                                      Loop&) {
  if (!trainer.state().is_training) {
    return;  // whoever takes the model after an evaluation wants it to evaluate
  }
  cleanup.push([give_back = giving_back_modes(trainer.state().model->module())](
                   const std::exception_ptr&) { give_back(); });
}

void ModelCallback::on_validate_start(Trainer&, Model& model, const DataLoader&, Loop&) {
  model.module().eval();
}

void ModelCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  state.set("model", model_state(trainer.state().model->module()));
}

void ModelCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  if (const StateValue* saved = state.find("model")) {
    check_model_state(trainer.state().model->module(), saved->as_dict(), is_strict(trainer));
  } else if (trainer.state().optimizer == nullptr) {
    throw CheckpointError("the checkpoint holds no model: there is nothing to evaluate");
  }
}

void ModelCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("model");
  if (saved == nullptr) {
    trainer.log().warning("the checkpoint holds no model: its parameters stay as they are");
    return;
  }
  const ModelStateReport report =
      load_model_state(trainer.state().model->module(), saved->as_dict(), is_strict(trainer));
  if (!report.empty()) {
    trainer.log().warning(
        fmt::format("loaded the model partially; missing from the checkpoint (unchanged): [{}]; "
                    "not in the model (ignored): [{}]",
                    fmt::join(report.missing, ", "),
                    fmt::join(report.unexpected, ", ")));
  }
}

}  // namespace rondo
