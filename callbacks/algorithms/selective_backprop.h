#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"
#include "callbacks/changes_final_input.h"

namespace rondo {

/// Trains on the hard part of each batch: a forward pass without gradients ranks the samples by
/// their loss, and some of them are drawn, those with a large one more often. Gradients are
/// those of the drawn samples alone. Samples are ranked as the model sees them, after all
/// callbacks that change the input. The loss that ranks is cross entropy of integer labels, or
/// the squared error of values.
/// Source: Jiang et al. 2019, arXiv:1910.00762; the schedule is Composer's
class SelectiveBackprop final : public Algorithm, public ChangesFinalInput {
 public:
  struct Options {
    double start = 0.5;            ///< share of the run at which it begins
    double end = 0.9;              ///< share of the run at which it ends, > start
    double keep = 0.5;             ///< share of a batch that is trained on, in (0, 1]
    double scale_factor = 1.0;     ///< of the sides of the pictures that are ranked, in (0, 1]
    int64_t interrupt = 2;         ///< every so many batches is trained on whole; 0: none
    std::string input = "image";   ///< in the batch: floating [B, channels, height, width]
    std::string target = "label";  ///< in the batch: integers, or shares of classes
  };

  explicit SelectiveBackprop(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;
  void on_final_input(Trainer& trainer) override;

  std::string exclusive() const override { return "chooses samples"; }

 private:
  at::Tensor losses_of(Trainer& trainer, const Batch& batch) const;

  Options options_;
  bool is_due_ = false;  // in the forward that follows
};

}  // namespace rondo
