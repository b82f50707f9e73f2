#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/byte_images.h"
#include "data/dataset.h"

namespace rondo {

/// The binary version of CIFAR-10: records of a label and 3 x 32 x 32 bytes. A sample has "image",
/// float32 [3, 32, 32], (pixel / 255 - mean) / std, and "label", int64 [].
/// Format: Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html.
class CifarBinary final : public Dataset {
 public:
  struct Options {
    std::string split = "train";                         ///< "train" (five files) or "test" (one)
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = "cifar-10-batches-bin";         ///< of data_dir, looked into as well
    std::vector<std::string> files = {};                 ///< read one after the other; else split's
    std::vector<double> mean = {0.0, 0.0, 0.0};          ///< of red, green and blue in [0, 1]
    std::vector<double> std = {1.0, 1.0, 1.0};           ///< of red, green and blue, each > 0
  };

  /// \throws DataError  naming the file and the offset of what is wrong
  explicit CifarBinary(const Options& options);

  int64_t size() const override { return images_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// Ten classes and the shape of an image.
  DatasetFacts facts() const override;

 private:
  ByteImages images_;
};

}  // namespace rondo
