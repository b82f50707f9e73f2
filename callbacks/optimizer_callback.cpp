#include "callbacks/optimizer_callback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/state_layout.h"
#include "core/error.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

void OptimizerCallback::setup(Trainer& trainer) {
  if (!trainer.options().optimizer) {
    return;
  }
  trainer.state().optimizer = trainer.options().optimizer.make();
  trainer.state().optimizer->attach(named_parameters(trainer.state().model->module()));
}

void OptimizerCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!trainer.state().optimizer) {
    throw UsageError(
        "fit needs an optimizer: set TrainerOptions::optimizer ([trainer.init.optimizer.AdamW])");
  }
}

void OptimizerCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  if (trainer.state().optimizer) {
    state.set("optimizer", trainer.state().optimizer->state_dict());
  }
}

void OptimizerCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("optimizer");
  if (!trainer.state().optimizer || saved == nullptr) {
    return;
  }
  const std::vector<std::string> found =
      layout_differences(trainer.state().optimizer->state_dict(), saved->as_dict());
  if (!found.empty()) {
    throw CheckpointError(fmt::format("the checkpoint's optimizer does not fit this one:\n  {}",
                                      fmt::join(found, "\n  ")));
  }
}

void OptimizerCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!trainer.state().optimizer) {
    return;
  }
  if (const StateValue* saved = state.find("optimizer")) {
    trainer.state().optimizer->load(saved->as_dict());
  } else {
    trainer.log().info("the checkpoint holds no optimizer state: the optimizer starts afresh");
  }
}

}  // namespace rondo
