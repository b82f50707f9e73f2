#pragma once

#include <cstdint>
#include <vector>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Stages of 3×3 convolution, batch norm, ReLU and 2×2 max pooling, then one linear layer, for
/// classification of "image", float32 [B, channels, image_size, image_size], with "label",
/// int64 [B]. Returns "loss", the mean cross entropy, when the batch has labels, and "logits",
/// [B, classes].
/// \capture safe
class Cnn final : public WrappedModel {
 public:
  struct Options {
    Auto<int64_t> channels = 1;              ///< of the images, >= 1
    Auto<int64_t> image_size = 28;           ///< pixels a side, >= 2 to the number of stages
    Auto<int64_t> classes = 10;              ///< >= 1
    std::vector<int64_t> widths = {16, 32};  ///< channels of each stage, each >= 1
    double dropout = 0.0;                    ///< share of the linear layer's inputs, in [0, 1)
    Factory<Criterion> loss = {};            ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Cnn(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
