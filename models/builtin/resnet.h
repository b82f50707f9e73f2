#pragma once

#include <cstdint>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Residual network for small images such as CIFAR: depth 6 · blocks + 2, three stages of widths
/// w, 2w, 4w, shortcuts without parameters. Classifies "image", float32 [B, channels, H, W] with
/// H, W >= 4, with "label", int64 [B]. Returns "loss", the mean cross entropy, when the batch has
/// labels, and "logits", [B, classes].
/// \capture safe
/// Source: He et al. 2015, arXiv:1512.03385, section 4.2, shortcuts of option A; initialisation of
/// He et al. 2015, arXiv:1502.01852.
class ResNet final : public WrappedModel {
 public:
  struct Options {
    int64_t blocks = 3;            ///< in each stage, >= 1; 3: ResNet-20
    int64_t width = 16;            ///< channels of the first stage, >= 1
    Auto<int64_t> classes = 10;    ///< >= 1
    Auto<int64_t> channels = 3;    ///< of the images, >= 1
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  explicit ResNet(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
