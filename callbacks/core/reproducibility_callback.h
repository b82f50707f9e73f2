#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Seeds the run and keeps its random state apart from the rest of the process; fills slot
/// `reproducibility`. LibTorch's default generators, the CPU's and the one of the device where
/// tensors live, hold the Trainer's numbers only while an RngScope is open.
class ReproducibilityCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "reproducibility";

  ~ReproducibilityCallback() override;

  /// Chooses the seed and opens the first scope, which the Trainer's constructor closes.
  void pre_setup(Trainer& trainer) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Puts the Trainer's random state into the default generators. Nests.
  void enter();
  /// Gives the generators back as they were.
  void leave();

 private:
  int depth_ = 0;
  std::vector<c10::Device> devices_{c10::kCPU};  // whose generators the run draws from
  std::vector<at::Tensor> own_;                  // the Trainer's states while nobody is inside
  std::vector<at::Tensor> outer_;                // the process's states while somebody is
};

/// The Trainer's random numbers for as long as it lives.
class RngScope {
 public:
  explicit RngScope(Trainer& trainer);
  RngScope(const RngScope&) = delete;
  RngScope& operator=(const RngScope&) = delete;
  ~RngScope();

 private:
  ReproducibilityCallback& random_;
};

}  // namespace rondo
