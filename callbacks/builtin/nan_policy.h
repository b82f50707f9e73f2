#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/decides_on_nan.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// What becomes of a run whose loss or gradients are not finite. "stop" ends it, as without this
/// callback. "skip" leaves parameters and optimizer as they are and goes on with the next batch.
/// "roll_back" lets `Trainer::fit` begin again from the newest checkpoint with a lower learning
/// rate, which stays lower and is saved. With `spike`, a loss far above its moving mean is treated
/// likewise. The mean is over about 100 updates, leaves such losses out, and counts from the 20th.
class NanPolicy final : public Callback, public DecidesOnNan, public NotInDryRuns {
 public:
  struct Options {
    std::string then = "skip";         ///< or "stop", "roll_back"
    int64_t most = 10;                 ///< bad losses in a row, or roll-backs of a process, >= 1
    double lr_factor = 0.5;            ///< of a roll-back, > 0
    std::optional<double> spike = {};  ///< times the mean, > 1; absent: only what is not finite
  };

  /// \throws UsageError  for options out of range
  explicit NanPolicy(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(NanPolicy(options)); }

  /// \throws UsageError  for `spike` with virtual ranks, each of which sees a part of the loss
  void post_setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_after_backward(Trainer& trainer, Model&, Outputs& outputs) override;
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;
  void on_after_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_after_save_checkpoint(Trainer&, const std::filesystem::path&) override;
  NamedTensors captured_state() override;

  bool skips_updates() const override { return options_.then == "skip"; }

  bool continues_after(Trainer& trainer, double loss) override;
  bool rolls_back(Trainer& trainer) override;

 private:
  /// Of the loss of updates, in the step: 0-dim tensors.
  struct Mean {
    at::Tensor group_loss;  // of the batches of this group so far
    at::Tensor mean;
    at::Tensor count;  // of the updates that it is of
  };

  at::Tensor take_loss(const at::Tensor& loss);
  void act_on_spike(Trainer& trainer, double loss, double mean);

  Options options_;
  at::Tensor lr_factor_;         // of all roll-backs that a checkpoint knows; "roll_back" only
  Mean mean_;                    // with `spike` only
  double since_save_ = 1.0;      // of those after the newest checkpoint
  std::vector<at::Tensor> lrs_;  // of the groups, while an update is made
  int64_t in_row_ = 0;           // losses that were not finite
  bool was_bad_ = false;         // in this update
  int64_t roll_backs_ = 0;
};

}  // namespace rondo
