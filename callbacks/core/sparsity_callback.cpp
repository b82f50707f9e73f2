#include "callbacks/core/sparsity_callback.h"

#include <fmt/format.h>

#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

SparsityCallback::SparsityCallback() = default;

SparsityCallback::~SparsityCallback() = default;

void SparsityCallback::setup(Trainer& trainer) {
  const SparsityOptions& options = trainer.options().sparsity;
  if (options.sparsity == 0.0) {
    return;
  }
  mask_ = std::make_unique<MagnitudeMask>(options);
  mask_->apply(named_parameters(trainer.state().model->module()));
}

void SparsityCallback::before_update() {
  if (mask_) {
    mask_->mask_gradients();
  }
}

void SparsityCallback::after_update() {
  if (mask_) {
    mask_->after_update();
  }
}

NamedTensors SparsityCallback::captured_state() {
  return mask_ ? mask_->captured_state() : NamedTensors();
}

void SparsityCallback::on_save_checkpoint(Trainer&, StateDict& state) {
  if (mask_) {
    state.set("sparsity", mask_->state_dict());
  }
}

void SparsityCallback::check_checkpoint(Trainer&, const StateDict& state) {
  const StateValue* saved = state.find("sparsity");
  if (mask_ && saved != nullptr) {
    mask_->check(saved->as_dict());
  }
}

void SparsityCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("sparsity");
  if (!mask_) {
    if (saved != nullptr && trainer.state().optimizer) {
      trainer.log().warning(
          "the checkpoint holds sparsity masks and this run's sparsity is 0: what is zero may be "
          "trained again");
    }
    return;
  }
  if (saved == nullptr) {
    trainer.log().warning("the checkpoint holds no sparsity masks: this run keeps its own");
    return;
  }
  const double own = mask_->sparsity();
  mask_->load(saved->as_dict());
  if (mask_->sparsity() != own) {
    trainer.log().warning(
        fmt::format("sparsity: the checkpoint's masks are taken, {:.3g} of the weights are zero, "
                    "and not {:.3g}",
                    mask_->sparsity(),
                    own));
  }
}

}  // namespace rondo
