#pragma once

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/module_model.h"

namespace rondo {

/// Linear layers with an activation and dropout between them, for classification.
class Mlp final : public ModuleModel {
 public:
  struct Options {
    std::vector<int64_t> sizes = {784, 256, 10};  ///< inputs, hidden units …, classes; all >= 1
    std::string activation = "relu";              ///< "relu", "gelu" (exact) or "tanh"
    double dropout = 0.0;                         ///< share of hidden units, in [0, 1)
    std::string input = "image";  ///< in the batch: [B, …], sizes[0] numbers a sample
    std::string label = "label";  ///< in the batch: int64 [B]
  };

  explicit Mlp(const Options& options);

  /// "loss", the mean cross entropy, when the batch has labels, and "logits", [B, classes].
  /// \capture safe
  Outputs forward(const Batch& batch) override;

  std::vector<Factory<Metric>> metrics() const override;

 private:
  at::Tensor activate(const at::Tensor& input) const;

  Options options_;
  std::vector<torch::nn::Linear> layers_;
};

}  // namespace rondo
