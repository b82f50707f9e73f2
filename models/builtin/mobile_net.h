#pragma once

#include <cstdint>
#include <string>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// MobileNetV2, with the parameter names of torchvision, whose files load: inverted residuals of
/// depthwise convolutions, for classifiers that are small and quick. Classifies "image", floating
/// [B, channels, H, W], with "label", integers [B]. Returns "loss" when the batch has labels, and
/// "logits", [B, classes].
/// \capture safe
/// Source: Sandler et al. 2018, arXiv:1801.04381, table 2.
class MobileNet final : public WrappedModel {
 public:
  struct Options {
    Auto<int64_t> classes = 10;     ///< >= 1
    Auto<int64_t> channels = 3;     ///< of the images, >= 1
    double width = 1.0;             ///< factor of all channels, > 0
    std::string stem = "imagenet";  ///< "imagenet": images of 224 pixels are halved 5 times;
                                    ///< "cifar": of 32, 3 times
    double dropout = 0.2;           ///< before the last layer, in [0, 1)
    Factory<Criterion> loss = {};   ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit MobileNet(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
