#pragma once

#include <cstdint>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// Vision transformer, with the parameter names of torchvision, whose files load: square patches of
/// an image are the tokens of a transformer encoder, and a class token beside them is classified.
/// Classifies "image", floating [B, channels, image_size, image_size], with "label", integers [B].
/// Returns "loss" when the batch has labels, and "logits", [B, classes]. ViT-B/16 is image_size
/// 224, patch 16, layers 12, heads 12, width 768, hidden 3072. The head begins with small numbers
/// where torchvision's begins with zeros.
/// \capture safe
/// Source: Dosovitskiy et al. 2020, arXiv:2010.11929.
class Vit final : public WrappedModel {
 public:
  struct Options {
    Auto<int64_t> image_size = 32;  ///< pixels a side, a multiple of patch
    int64_t patch = 4;              ///< pixels a side, >= 1
    Auto<int64_t> channels = 3;     ///< of the images, >= 1
    Auto<int64_t> classes = 10;     ///< >= 1
    int64_t layers = 6;             ///< >= 1
    int64_t heads = 4;              ///< a divisor of width, >= 1
    int64_t width = 128;            ///< of a token, >= 1
    int64_t hidden = 0;             ///< width of a perceptron; 0: 4 · width
    double dropout = 0.0;           ///< of embeddings, attention and perceptrons, in [0, 1)
    /// Whether the backward pass computes each block again (models/recompute.h).
    bool recompute = false;
    Factory<Criterion> loss = {};  ///< none: cross entropy
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Vit(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
