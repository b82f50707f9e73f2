#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/images/byte_images.h"

namespace rondo {

/// The binary version of CIFAR-10 or CIFAR-100: records of a label, or a coarse and a fine one, and
/// 3 x 32 x 32 bytes. A sample has "image", float32 [3, 32, 32], (pixel / 255 - mean) / std, and
/// "label", int64 [].
/// Format: Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html.
class CifarBinary final : public Dataset {
 public:
  struct Options {
    /// "cifar10"; "cifar100" with its 100 fine labels; "cifar100_coarse" with its 20 coarse ones.
    std::string layout = "cifar10";
    std::string split = "train";                         ///< "train" or "test"
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    /// Of data_dir, looked into as well; the name in the layout's archive when absent.
    std::optional<std::string> folder = {};
    std::vector<std::string> files = {};         ///< read one after the other; else split's
    std::vector<double> mean = {0.0, 0.0, 0.0};  ///< of red, green and blue in [0, 1]
    std::vector<double> std = {1.0, 1.0, 1.0};   ///< of red, green and blue, each > 0
  };

  /// \throws DataError  naming the file and the offset of what is wrong
  explicit CifarBinary(const Options& options);

  int64_t size() const override { return images_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// The classes and the shape of an image.
  DatasetFacts facts() const override;

 private:
  ByteImages images_;
  int64_t classes_ = 10;
};

}  // namespace rondo
