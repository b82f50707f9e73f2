#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rondo {

/// Digits drawn as by hand, made without any file. A sample has "image", float32 [1, 28, 28] in
/// [0, 1], ink on 0, and "label", int64 [], 0 … 9. Glyph i is a digit i mod 10 and a pure function
/// of (seed, split, i): a smaller set is the beginning of a larger one.
class Glyphs final : public Dataset {
 public:
  struct Options {
    int64_t size = 8000;             ///< glyphs, >= 1
    std::string split = "train";     ///< "train" or "val": other glyphs of the same kind
    uint64_t seed = 0;               ///< other glyphs again
    double max_rotation_deg = 15.0;  ///< to either side, degrees, in [0, 180]
    double distortion = 1.0;         ///< of shear, scale, shape and stroke width; 0: none
    double noise = 0.1;              ///< largest change of a pixel, in [0, 1]
  };

  explicit Glyphs(const Options& options);

  int64_t size() const override { return labels_.size(0); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// Ten classes and the shape of an image.
  DatasetFacts facts() const override;

 private:
  at::Tensor images_;  // float32 [size, 1, 28, 28]
  at::Tensor labels_;  // int64 [size]
};

}  // namespace rondo
