#include "callbacks/model_callback.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

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

void ModelCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("model");
  if (saved == nullptr) {
    trainer.log().warning("the checkpoint holds no model: its parameters stay as they are");
    return;
  }
  const bool strict = !trainer.options().checkpoint.disable_strict_checkpoint_loading;
  load_model_state(trainer.state().model->module(), saved->as_dict(), strict);
}

}  // namespace rondo
