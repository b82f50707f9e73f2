#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "callbacks/algorithms/layer_surgery.h"

namespace rondo {

/// Leaves out residual branches at random in training. What the last layer of a branch gives is
/// multiplied by 0 or 1, and by the probability of 1 in evaluation. A branch that is left out is
/// computed all the same, so its batch norms see the batch.
/// Source: Huang et al. 2016, arXiv:1603.09382, sections 3 and 4; the methods are Composer's
class StochasticDepth final : public LayerSurgery {
 public:
  struct Options {
    /// Globs of the last layers of branches, in the order of the model; the default is ResNet's.
    std::vector<std::string> layers = {"stage*_block*.norm2"};
    std::string stochastic_method = "block";   ///< "block": for the batch; "sample": for each
    double drop_rate = 0.2;                    ///< of the last branch, in [0, 1)
    std::string drop_distribution = "linear";  ///< "linear": growing from the first; "uniform"
    double drop_warmup = 0.0;  ///< share of the run in which the rates grow from 0, in [0, 1)
  };

  explicit StochasticDepth(const Options& options);

  void post_setup(Trainer& trainer) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;

  NamedTensors captured_state() override { return {{"warmth", warmth_}}; }

  /// The parameters are what they were: a run without it can take a checkpoint.
  bool required_on_load() const override { return false; }

 protected:
  void change(torch::nn::Module& model) override;

 private:
  Options options_;
  at::Tensor warmth_;  // float32 []: share of the rates that holds
};

}  // namespace rondo
