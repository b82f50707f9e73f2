#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rondo {

/// Pictures of discs, squares and triangles with a mask, made without any file, for segmentation. A
/// sample has "image", float32 [1, side, side], and "mask", int64 [side, side]: 0 is the
/// background, 1 a disc, 2 a square, 3 a triangle. Later shapes cover earlier ones; brightness and
/// noise say nothing of the kind. Picture i is a pure function of (seed, split, i): a smaller set
/// is the beginning of a larger one.
class Shapes final : public Dataset {
 public:
  struct Options {
    int64_t size = 1000;          ///< pictures, >= 1
    int64_t side = 32;            ///< pixels, >= 8
    int64_t most_shapes = 3;      ///< in a picture, >= 1; there is at least one
    double noise = 0.2;           ///< standard deviation of that of a pixel, >= 0
    std::string split = "train";  ///< "train" or "val": other pictures of the same kind
    uint64_t seed = 0;            ///< other pictures again
  };

  /// \throws UsageError  for options out of range
  explicit Shapes(const Options& options);

  int64_t size() const override { return masks_.size(0); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// Four classes and the shape of an image.
  DatasetFacts facts() const override;

 private:
  at::Tensor images_;  // float32 [size, 1, side, side]
  at::Tensor masks_;   // int64 [size, side, side]
};

}  // namespace rondo
