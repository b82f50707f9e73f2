#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Builds the model on the backend's device and sets its mode, which a validation during training
/// restores; fills slot `model`.
class ModelCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "model";

  /// Applies `change` to the model when it is built, before any optimizer takes its parameters.
  /// Call it in `pre_setup`.
  void prepare(std::function<void(Model&)> change) { changes_.push_back(std::move(change)); }

  void setup(Trainer& trainer) override;
  void on_train_start(Trainer&, Model& model, const DataLoader&, Loop&, int64_t) override;
  void on_enter_validate(Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&) override;
  void on_validate_start(Trainer&, Model& model, const DataLoader&, Loop&) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

 private:
  std::vector<std::function<void(Model&)>> changes_;
};

}  // namespace rondo
