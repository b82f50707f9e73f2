#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Brings an input to mean 0 and standard deviation 1 with running statistics of what training has
/// seen, in the step: for data that nobody can look at before, such as that of a simulation.
/// Training batches are added to the statistics before they are used; validations and predictions
/// take them as they are. They are saved with the callback's state. Not for virtual ranks, of which
/// each sees a part of the data.
/// Source: Chan, Golub and LeVeque 1979, updating formulae for variances.
class NormalizeInputs final : public Callback {
 public:
  struct Options {
    std::string input = {};  ///< its name in the batch, floating or integer; must be given
    /// Of the statistics: the last dimensions of the input, 1 where a dimension shares one mean.
    /// [4] for [B, 4], [3, 1, 1] for the channels of pictures; [] for one mean of everything.
    std::vector<int64_t> shape = {};
    double limit = 10.0;    ///< results are cut to this many standard deviations, > 0
    double epsilon = 1e-8;  ///< added to the variance, > 0
  };

  explicit NormalizeInputs(const Options& options);

  void post_setup(Trainer& trainer) override;
  void on_before_forward(Trainer&, Model& model, const Batch&, Batch& input) override;

  NamedTensors captured_state() override;

  std::string state_subject() const override { return options_.input; }

 private:
  void add(const at::Tensor& values);

  Options options_;
  at::Tensor count_;    // float64 []: numbers behind each mean
  at::Tensor mean_;     // float64 [shape]
  at::Tensor squares_;  // float64 [shape]: sum of squared differences from the mean
};

}  // namespace rondo
