#include "loops/running_stage.h"

#include <utility>

#include "trainer/trainer.h"

namespace rondo {

namespace {

std::string label_of(Trainer& trainer, const DataLoader& loader, bool is_training) {
  if (is_training) {
    return loader.label().empty() ? "train" : loader.label();
  }
  return trainer.metric_log().scope_of(loader);
}

}  // namespace

RunningStage::RunningStage(Trainer& trainer, const DataLoader& loader, bool is_training)
    : trainer_(trainer),
      executor_before_(trainer.state().executor),
      was_training_(trainer.state().is_training),
      batch_before_(trainer.state().batch),
      loader_before_(trainer.state().loader),
      label_before_(trainer.state().loader_label),
      pass_before_(trainer.state().pass) {
  State& state = trainer_.state();
  state.executor = nullptr;
  state.is_training = is_training;
  state.batch = nullptr;
  state.loader = &loader;
  state.loader_label = label_of(trainer, loader, is_training);
  state.pass = {};
}

RunningStage::~RunningStage() {
  State& state = trainer_.state();
  state.executor = executor_before_;
  state.is_training = was_training_;
  state.batch = batch_before_;
  state.loader = loader_before_;
  state.loader_label = std::move(label_before_);
  state.pass = pass_before_;
}

void RunningStage::use(DataExecutor& executor) {
  trainer_.state().executor = &executor;
}

}  // namespace rondo
