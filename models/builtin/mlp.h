#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Linear layers with an activation and dropout between them, for classification. Returns "loss",
/// the mean cross entropy, when the batch has labels, and "logits", [B, classes].
/// \capture safe
class Mlp final : public WrappedModel {
 public:
  struct Options {
    std::vector<int64_t> sizes = {784, 256, 10};  ///< inputs, hidden units …, classes; all >= 1
    std::string activation = "relu";              ///< "relu", "gelu" (exact) or "tanh"
    double dropout = 0.0;                         ///< share of hidden units, in [0, 1)
    std::string input = "image";   ///< in the batch: [B, …], sizes[0] numbers a sample
    std::string label = "label";   ///< in the batch: int64 [B]
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  explicit Mlp(const Options& options);
};

}  // namespace rondo
