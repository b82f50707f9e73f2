#include "loops/running_stage.h"

#include "trainer/trainer.h"

namespace rondo {

RunningStage::RunningStage(Trainer& trainer, bool is_training)
    : trainer_(trainer),
      executor_before_(trainer.state().executor),
      was_training_(trainer.state().is_training) {
  trainer_.state().executor = nullptr;
  trainer_.state().is_training = is_training;
}

RunningStage::~RunningStage() {
  trainer_.state().executor = executor_before_;
  trainer_.state().is_training = was_training_;
}

void RunningStage::use(DataExecutor& executor) {
  trainer_.state().executor = &executor;
}

}  // namespace rondo
