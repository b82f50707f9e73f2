#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "core/named_tensor.h"
#include "core/time.h"

namespace rondo {

class Mask;

/// Keeps an average of the model's weights and floating-point buffers, in the step, and lets
/// validations see it: the raw weights go on being trained. Of weights in half precision it is in
/// float32, from the optimizer's masters where there are any. It is zero where sparsity prunes the
/// weight. The average is saved with the callback's state, each tensor under its name in the model.
/// Source: Polyak and Juditsky 1992 for "ema"; Izmailov et al. 2018, arXiv:1803.05407, for "swa".
class AverageWeights final : public Callback {
 public:
  struct Options {
    /// "ema": a share `decay` of the average stays at each averaging. "swa": the mean of all.
    std::string kind = "ema";
    double decay = 0.999;  ///< in [0, 1)
    /// The time after which weights count half in the average, > 0; instead of `decay`.
    std::optional<Time> half_life = {};
    Time start = 0;             ///< before the first averaging, >= 0; until then, the weights
    Time every = 1;             ///< from one averaging to the next, > 0
    bool in_validation = true;  ///< validations and predictions see the average, not raw weights
    /// "beside": a checkpoint's model is the raw weights, the average is this callback's.
    /// "instead": the other way round. A run resumes with the same bits from both.
    std::string save = "beside";
    bool update_batch_norm = false;  ///< at the end of a fit, with a pass over the training data
    /// A file in model_dir, or anywhere, that gets the average as a model when a fit ends; empty:
    /// none.
    std::filesystem::path export_to = {};
  };

  explicit AverageWeights(const Options& options);

  /// \throws UsageError  when another one also takes the model's place in validations or
  /// checkpoints
  void post_setup(Trainer& trainer) override;
  /// \throws UsageError  for a time that this run cannot count in updates
  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) override;
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_enter_validate(Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&) override;
  void on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) override;
  void on_predict_start(Trainer&, Model&, const DataLoader&, Loop&) override;

  /// Puts raw weights and average where `save` wants them, also while a validation sees the
  /// average.
  void postprocess_checkpoint(Trainer& trainer, StateDict& state) override;

  /// Has the raw weights be the model again.
  void preprocess_checkpoint(Trainer& trainer, StateDict& state) override;

  NamedTensors captured_state() override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

  std::string state_subject() const override { return options_.kind; }

 private:
  void show_average();
  bool is_due(int64_t update) const;
  /// The share of the weights in the average after the coming update.
  double share_of_weights(int64_t update) const;
  void add(Trainer& trainer, const NamedTensor& weight);
  void require_alone(const Trainer& trainer) const;
  void warn_of_start(const Trainer& trainer) const;
  /// Gives the model the average, or its own weights again.
  void exchange();
  /// The weight that is trained, also while the model has the average.
  at::Tensor raw(size_t i) const;
  /// The average in the weight's dtype.
  at::Tensor as_weight(size_t i) const;
  void take_buffers();
  void take_from_model(StateDict& model, StateDict& own) const;
  /// Gives the batch norms of the average their own statistics.
  void update_batch_norm(Trainer& trainer);
  void write_average(Trainer& trainer) const;

  Options options_;
  NamedTensors weights_;             // the model's, parameters first
  std::vector<at::Tensor> sources_;  // what is averaged: the weights, or their masters
  std::vector<const Mask*> masks_;   // of the weights; null where none is
  NamedTensors average_;             // the same names
  size_t parameters_ = 0;            // of the weights; the others are buffers
  std::vector<at::Tensor> raw_;      // the weights, while the model has the average
  at::Tensor share_;                 // float64 []: of the weights, at the coming update
  int64_t start_ = 0;                // in updates
  int64_t every_ = 1;                // in updates
  double decay_ = 0.0;               // at an averaging
  int64_t averaged_ = 0;             // how many times so far
  bool is_exchanged_ = false;
  std::optional<DataLoader> train_;  // where a pass over it will be needed
};

}  // namespace rondo
