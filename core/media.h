#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace rondo {

/// The distribution of a tensor's values. Non-finite values are counted separately.
struct Histogram {
  double least = 0.0;  ///< of the finite values
  double most = 0.0;
  double sum = 0.0;
  double sum_of_squares = 0.0;
  int64_t count = 0;
  int64_t not_finite = 0;
  std::vector<double> edges;    ///< ascending, one more than counts
  std::vector<int64_t> counts;  ///< a value belongs to the bucket whose lower edge it reaches
};

/// Pixels row by row, of one channel (gray) or three (red, green, blue).
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  std::vector<uint8_t> pixels;
};

/// Cells of text in columns with names.
struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`
};

/// What can be logged besides numbers; a string is a text.
struct Media {
  std::string name;
  std::variant<Histogram, Picture, std::string, TextTable> value;
};

/// The histogram of a tensor of numbers, in `buckets` of equal width.
/// \capture host only
Histogram histogram_of(const at::Tensor& values, int64_t buckets = 64);

/// The picture of a tensor [height, width], [channels, height, width] with 1 or 3 channels, or
/// [height, width, channels]. Bytes stay as they are; other numbers are scaled so that the smallest
/// is black and the largest white. \throws ShapeError  for another shape \capture host only
Picture picture_of(const at::Tensor& pixels);

}  // namespace rondo
