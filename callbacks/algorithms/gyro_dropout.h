#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "callbacks/algorithms/layer_surgery.h"

namespace rondo {

/// Trains few masks of dropout instead of a new one for each batch: of `sigma` masks, `tau` are
/// used at a time, each by as many samples of a batch as another, and each mask once in a run. A
/// mask follows from the seed and its number, so none is kept. It holds where the input of a
/// dropout is [B, features]; other dropouts stay what they are.
/// Source: Lee et al. 2022, "Gyro Dropout: Maximizing Ensemble Effect in Neural Network Training",
/// MLSys, section 3
class GyroDropout final : public LayerSurgery {
 public:
  struct Options {
    double p = 0.5;       ///< share of features that a mask sets to zero, in [0, 1)
    int64_t sigma = 256;  ///< masks, >= 1
    int64_t tau = 16;     ///< masks at a time, in [1, sigma]
  };

  explicit GyroDropout(const Options& options);

  static void check(const Options& options) { static_cast<void>(GyroDropout(options)); }

  void post_setup(Trainer& trainer) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void begin_forward() override;

  /// Masks follow from the order in which a forward comes to the layers.
  bool can_run_parts_again() const override { return false; }

  NamedTensors captured_state() override { return {{"masks", masks_}}; }

  bool required_on_load() const override { return false; }

  /// Which features stay, bool [numbers, features], of the dropout that a forward calls as its
  /// `place`th.
  static at::Tensor kept(
      const at::Tensor& numbers, int64_t features, int64_t place, uint64_t seed, double p);

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
  uint64_t seed_ = 0;
  int64_t place_ = 0;  // of the next dropout in the running forward
  at::Tensor masks_;   // int64 [tau]: numbers of those in use
};

}  // namespace rondo
