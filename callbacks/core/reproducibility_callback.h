#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

class VirtualRanks;

/// Seeds the run and isolates its random state from the rest of the process; fills slot
/// `reproducibility`. LibTorch's default generators, for the CPU and for the device of the tensors,
/// hold the Trainer's state only while an RngScope is open. The steps of each virtual rank draw
/// from its own state, seeded from the run's seed and the rank's number.
class ReproducibilityCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "reproducibility";

  ReproducibilityCallback();
  ~ReproducibilityCallback() override;

  /// Chooses the seed, which is the same in all processes, and opens the first scope, which the
  /// Trainer's constructor closes.
  void pre_setup(Trainer& trainer) override;
  void on_enter_fit(Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Puts the Trainer's random state into the default generators. Nests.
  void enter();
  /// Restores the generators.
  void leave();

  /// Swaps the state of the default generators with that of a virtual rank, or back.
  void swap_rank(int64_t rank);

  /// The virtual ranks of the run; null: none.
  VirtualRanks* ranks() const { return of_ranks_.empty() ? nullptr : ranks_.get(); }

  /// The virtual ranks' tensors that a step reads or writes.
  NamedTensors captured_state() override;

 private:
  void use_ranks(Trainer& trainer, int64_t count);
  void save_ranks(Trainer& trainer, StateDict& rng);
  void load_ranks(Trainer& trainer, const StateDict& rng);

  bool is_fitting_ = false;
  int depth_ = 0;
  std::vector<c10::Device> devices_{c10::kCPU};    // whose generators the run draws from
  std::vector<at::Tensor> own_;                    // the Trainer's states while no scope is open
  std::vector<at::Tensor> outer_;                  // the process's states while one is open
  std::unique_ptr<VirtualRanks> ranks_;            // null until the first use
  std::vector<std::vector<at::Tensor>> of_ranks_;  // states by virtual rank, then device
};

/// Activates the random state of a virtual rank for as long as it lives, inside an RngScope.
class RankRandom {
 public:
  RankRandom(Trainer& trainer, int64_t rank);
  RankRandom(const RankRandom&) = delete;
  RankRandom& operator=(const RankRandom&) = delete;
  ~RankRandom();

 private:
  ReproducibilityCallback& random_;
  int64_t rank_;
};

/// Activates the Trainer's random state for as long as it lives.
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
