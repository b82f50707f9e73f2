#pragma once

#include <cstdint>
#include <string>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// U-Net for signals, images and volumes: gives each place a class, or values. Sees "image",
/// floating [B, channels, ...] with `dims` sizes, each a multiple of 2 to the depth, and "mask",
/// [B, ...]: integers, numbers of classes. Returns "loss" when the batch has a mask, and "logits",
/// [B, ..., classes]. With a loss of shares (BCE) or of values, the mask has the output's shape,
/// which is [B, ...] for one class; it is floating, or of 0 and 1 for shares. The output of values
/// is "prediction".
///
/// \capture safe
/// Source: Ronneberger et al. 2015, arXiv:1505.04597, with padding and batch norm; Çiçek et al.
/// 2016, arXiv:1606.06650, for three dimensions.
class UNet final : public WrappedModel {
 public:
  struct Options {
    int64_t dims = 2;            ///< of an image: 1, 2 or 3
    Auto<int64_t> channels = 1;  ///< of the input, >= 1
    Auto<int64_t> classes = 2;   ///< or values, of each place, >= 1
    int64_t width = 16;          ///< channels of the first level, >= 1; a multiple of 8 for "group"
    int64_t depth = 3;           ///< times that the size is halved, in [1, 8]
    std::string norm = "batch";  ///< "batch", "group" (of 8 channels) or "none"
    std::string label = "mask";  ///< name of the target in the batch
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit UNet(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
