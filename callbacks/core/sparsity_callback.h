#pragma once

#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "core/time.h"
#include "core/timestamp.h"
#include "sparsity/masks.h"

namespace rondo {

/// Keeps masked weights at zero and updates the masks; fills slot `sparsity`. Does nothing without
/// sparsity.
class SparsityCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "sparsity";

  SparsityCallback();
  ~SparsityCallback() override;

  void setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;
  NamedTensors captured_state() override;

  /// The name of the next training step: "train", or another one for a step that changes masks.
  const std::string& step_name() const { return step_name_; }

  /// Zeroes the gradients of the masked weights that the optimizer updates, so that no state builds
  /// up for them.  \capture safe
  void before_update(const Optimizer& optimizer);

  /// The gradient of a weight, zero where it is pruned.  \capture safe
  at::Tensor masked(const at::Tensor& gradient, const at::Tensor& weight) const;

  /// Zeroes these weights again and updates the masks that are due.  \capture safe
  void after_update(const Optimizer& optimizer);

  /// Null without sparsity.
  const SparsityMasks* masks() const { return masks_.get(); }

  /// The share of zeros that a group's schedule asks for now.
  double target(const MaskGroup& group, const Timestamp& now) const;

 private:
  /// The part of the run in which a group's masks change, in one unit.
  struct Window {
    TimeUnit unit = TimeUnit::Update;
    double start = 0.0;
    double stop = 0.0;

    double share_done(const Timestamp& now) const;
  };

  bool is_due(const Trainer& trainer, size_t group) const;

  std::unique_ptr<SparsityMasks> masks_;
  std::vector<Window> windows_;  // one a group, once a fit has begun
  std::string step_name_ = "train";
};

}  // namespace rondo
