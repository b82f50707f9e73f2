#include "loops/group_undo.h"

#include "callbacks/callback_states.h"
#include "callbacks/core/backend_callback.h"
#include "tracing/checks/state_snapshot.h"
#include "trainer/trainer.h"

namespace rondo {

GroupUndo::GroupUndo() = default;

GroupUndo::~GroupUndo() = default;

void GroupUndo::note(Trainer& trainer) {
  const CapturedState state = captured_state(trainer);
  if (tensors_ == nullptr || !tensors_->retake(state)) {
    tensors_.reset();  // before the next copy is made
    tensors_ = std::make_unique<StateSnapshot>(state, Batch());
  }
  callbacks_ = callback_states(trainer);
  now_ = trainer.state().timestamp;
  previous_ = trainer.state().previous;
  earlier_ = trainer.state().earlier;
}

void GroupUndo::undo(Trainer& trainer) {
  State& state = trainer.state();
  for (const auto& optimizer : state.optimizers) {
    optimizer->zero_grad();
  }
  tensors_->swap();
  load_callback_states(trainer, callbacks_);
  state.timestamp = now_;
  state.previous = previous_;
  state.earlier = earlier_;
}

}  // namespace rondo
