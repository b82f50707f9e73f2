#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/images/byte_images.h"

namespace rondo {

/// Labelled grey images in idx files, gzipped or not: MNIST and its relatives. A sample has
/// "image", float32 [1, height, width], (pixel / 255 - mean) / std, and "label", int64 []. Formats:
/// LeCun, Cortes and Burges, The MNIST database of handwritten digits; Cohen, Afshar, Tapson and
/// van Schaik 2017, EMNIST, arXiv:1702.05373.
class IdxImages final : public Dataset {
 public:
  struct Options {
    std::string split = "train";                         ///< "train" or "test": the file names
    int64_t first = 0;                                   ///< number of the first image that is used
    std::optional<int64_t> count = {};                   ///< images from there; all when absent
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};  ///< of data_dir, looked into as well; "mnist" or "emnist" when empty
    std::string images = {};  ///< file name, with or without .gz; else split's
    std::string labels = {};  ///< file name, with or without .gz; else split's
    /// "mnist", or "emnist_balanced", "emnist_byclass", "emnist_bymerge", "emnist_digits",
    /// "emnist_letters" or "emnist_mnist". It says how files are called, how many classes there are
    /// and, of EMNIST, what they are called. EMNIST's pictures are stored by columns, and its
    /// letters numbered from 1: samples have rows and numbers from 0.
    std::string layout = "mnist";
    std::optional<int64_t> classes = {};  ///< labels are below, in [1, 256]; else the layout's
    double mean = 0.0;                    ///< of the pixels in [0, 1]
    double std = 1.0;                     ///< of the pixels in [0, 1], > 0
  };

  /// \throws DataError  naming the file and the offset of what is wrong
  explicit IdxImages(const Options& options);

  int64_t size() const override { return images_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// The classes of the options and the shape of an image.
  DatasetFacts facts() const override { return facts_; }

 private:
  ByteImages images_;
  DatasetFacts facts_;
};

}  // namespace rondo
