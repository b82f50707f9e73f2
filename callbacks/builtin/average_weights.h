#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback.h"
#include "core/named_tensor.h"

namespace rondo {

/// Keeps an average of the model's weights and floating-point buffers, in the step, and lets
/// validations see it: the raw weights go on being trained. The average is saved with the
/// callback's state, each tensor under its name in the model. Source: Polyak and Juditsky 1992 for
/// "ema"; Izmailov et al. 2018, arXiv:1803.05407, for "swa".
class AverageWeights final : public Callback {
 public:
  struct Options {
    /// "ema": a share `decay` of the average stays at each averaging. "swa": the mean of all.
    std::string kind = "ema";
    double decay = 0.999;       ///< in [0, 1)
    int64_t start = 0;          ///< updates before the first averaging; until then, the weights
    int64_t every = 1;          ///< updates from one averaging to the next, >= 1
    bool in_validation = true;  ///< validate the average, not the raw weights
  };

  explicit AverageWeights(const Options& options);

  void post_setup(Trainer& trainer) override;
  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_after_optimizer_step(Trainer&, Model&, Optimizer&) override;
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_enter_validate(Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&) override;
  void on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) override;

  /// Weights that are saved while a validation sees the average are the raw ones.
  void postprocess_checkpoint(Trainer& trainer, StateDict& state) override;

  NamedTensors captured_state() override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 private:
  bool is_due(int64_t update) const;
  /// The share of the weights in the average after the coming update.
  double share_of_weights(int64_t update) const;
  /// Exchanges weights and average.
  void exchange();

  Options options_;
  NamedTensors weights_;  // the model's
  NamedTensors average_;  // the same names
  at::Tensor share_;      // float64 []: of the weights, at the coming update
  int64_t averaged_ = 0;  // how many times so far
  bool is_exchanged_ = false;
};

}  // namespace rondo
