#include "loops/steps/standard_step.h"

#include <ATen/core/Tensor.h>

#include "callbacks/core/precision_callback.h"
#include "loops/step_context.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// The loss of a batch that was computed, and then that at other weights, with its gradients.
Optimizer::Evaluate evaluate_again(StepContext& step, const Batch& batch, const Outputs& outputs) {
  return [&step, &batch, &outputs, is_first = true]() mutable {
    if (is_first) {
      is_first = false;
      return loss_of(outputs, batch).detach();
    }
    Optimizer& optimizer = step.optimizer();
    optimizer.zero_grad();
    Outputs again = step.forward(batch);
    step.backward(again);
    step.trainer().step_slots().precision->clip_gradients(optimizer);
    return loss_of(again, batch).detach();
  };
}

}  // namespace

Outputs StandardStep::run(StepContext& step, const Batch& batch) {
  Outputs outputs = step.forward(batch);
  step.backward(outputs);
  const GroupPosition& position = step.position();
  const bool is_whole = position.is_first && position.is_last;
  if (is_whole && step.trainer().state().optimizer->needs_evaluate()) {
    step.update("", evaluate_again(step, batch, outputs));
  } else {
    step.update_all();
  }
  return outputs;
}

}  // namespace rondo
