#include "callbacks/model_callback.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool is_strict(const Trainer& trainer) {
  return !trainer.options().checkpoint.disable_strict_checkpoint_loading;
}

}  // namespace

void ModelCallback::setup(Trainer& trainer) {
  State& state = trainer.state();
  state.model = trainer.options().model.make();
  state.model->module().to(state.backend->device());
}

void ModelCallback::on_train_start(Trainer&, Model& model, const DataLoader&, Loop&, int64_t) {
  model.module().train();
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
        fmt::format("loaded a model in part; not in the checkpoint, and as they were: [{}]; not in "
                    "the model, and left out: [{}]",
                    fmt::join(report.missing, ", "),
                    fmt::join(report.unexpected, ", ")));
  }
}

}  // namespace rondo
