#pragma once

#include <cstdint>
#include <string>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// The residual networks of ImageNet, with the parameter names of torchvision, whose files load:
/// ResNet-18 and -34 of blocks with two 3×3 convolutions, ResNet-50, -101 and -152 of bottlenecks
/// with the stride in the 3×3 convolution. Classifies "image", floating [B, channels, H, W], with
/// "label", integers [B]. Returns "loss" when the batch has labels, and "logits", [B, classes].
/// ResNet is the smaller kind for CIFAR of the same paper.
/// \capture safe
/// Source: He et al. 2015, arXiv:1512.03385, section 4.1, shortcuts of option B.
class DeepResNet final : public WrappedModel {
 public:
  struct Options {
    int64_t depth = 18;             ///< 18, 34, 50, 101 or 152
    Auto<int64_t> classes = 10;     ///< >= 1
    Auto<int64_t> channels = 3;     ///< of the images, >= 1
    int64_t width = 64;             ///< channels of the first stage, >= 1
    std::string stem = "imagenet";  ///< "imagenet": images of 224 pixels, 7×7 with stride 2 and
                                    ///< pooling; "cifar": of 32, 3×3
    /// Whether the backward pass computes each block again (models/recompute.h).
    bool recompute = false;
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit DeepResNet(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
