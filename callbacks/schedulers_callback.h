#pragma once

#include "callbacks/callback.h"

namespace rondo {

/// Builds the schedulers and moves their numbers after each update; fills slot `schedulers`.
class SchedulersCallback : public CoreCallback {
 public:
  void setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Writes the numbers of the next update, scheduler by scheduler, between its hooks. A host call:
  /// it runs in every replay.
  void step(Trainer& trainer);
};

}  // namespace rondo
