#pragma once

#include <memory>

#include "callbacks/callback.h"
#include "sparsity/magnitude_mask.h"

namespace rondo {

/// Keeps masked weights at zero; fills slot `sparsity`. Does nothing at sparsity 0.
class SparsityCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "sparsity";

  SparsityCallback();
  ~SparsityCallback() override;

  void setup(Trainer& trainer) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;
  NamedTensors captured_state() override;

  /// Zeroes the gradients of masked weights, so that nothing is kept for them.  \capture safe
  void before_update();

  /// Zeroes the masked weights again.  \capture safe
  void after_update();

 private:
  std::unique_ptr<MagnitudeMask> mask_;
};

}  // namespace rondo
