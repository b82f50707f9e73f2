#include "data/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace rondo {

namespace {

/// What each pixel of the result takes along one side: `count` weights from `first` on.
struct Taps {
  struct Pixel {
    int64_t first = 0;
    int64_t count = 0;
    size_t weights = 0;  // where they begin
  };

  std::vector<Pixel> pixels;
  std::vector<float> weights;
};

/// \param from   where the part begins, in pixels of the picture
/// \param share  pixels of the picture that one of the result covers
/// \param size   of the picture
Taps taps_of(double from, double share, int64_t size, int64_t result) {
  const double reach = std::max(share, 1.0);
  Taps taps;
  for (int64_t i = 0; i < result; ++i) {
    const double centre = from + (static_cast<double>(i) + 0.5) * share;
    // A pixel counts when its centre lies inside of the triangle.
    auto first = static_cast<int64_t>(std::floor(centre - reach + 0.5));
    auto end = static_cast<int64_t>(std::floor(centre + reach + 0.5));
    first = std::clamp<int64_t>(first, 0, size - 1);
    end = std::clamp<int64_t>(end, first + 1, size);
    const size_t begin = taps.weights.size();
    double total = 0.0;
    for (int64_t j = first; j < end; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / reach;
      const double weight = std::max(0.0, 1.0 - distance);
      taps.weights.push_back(static_cast<float>(weight));
      total += weight;
    }
    for (size_t j = begin; j < taps.weights.size(); ++j) {
      // Beyond the picture's edge its last pixel stands alone.
      taps.weights[j] = total > 0 ? static_cast<float>(taps.weights[j] / total)
                                  : 1.0F / static_cast<float>(end - first);
    }
    taps.pixels.push_back({first, end - first, begin});
  }
  return taps;
}

template <class Value>
float value_at(const uint8_t* bytes, size_t i) {
  Value value;
  std::memcpy(&value, bytes + i * sizeof(Value), sizeof(Value));
  return static_cast<float>(value);
}

/// Rows [first, end) scaled along their width: [rows, channels, width].
template <class Value>
std::vector<float> scaled_rows(const Image& image,
                               const Taps& columns,
                               int64_t first,
                               int64_t end) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t width = columns.pixels.size();
  std::vector<float> rows(static_cast<size_t>(end - first) * channels * width);
  const auto row_bytes = static_cast<size_t>(image.width * image.channels) * sizeof(Value);
  for (int64_t y = first; y < end; ++y) {
    const uint8_t* const from = image.bytes.data() + static_cast<size_t>(y) * row_bytes;
    float* const to = rows.data() + static_cast<size_t>(y - first) * channels * width;
    for (size_t x = 0; x < width; ++x) {
      const Taps::Pixel& pixel = columns.pixels[x];
      const float* const weights = columns.weights.data() + pixel.weights;
      for (size_t c = 0; c < channels; ++c) {
        float sum = 0.0F;
        for (int64_t j = 0; j < pixel.count; ++j) {
          sum += weights[j] *
                 value_at<Value>(from, static_cast<size_t>(pixel.first + j) * channels + c);
        }
        to[c * width + x] = sum;
      }
    }
  }
  return rows;
}

}  // namespace

void resample(const Image& image, const ImageBox& box, int64_t height, int64_t width, float* to) {
  const auto pixels_high = static_cast<double>(image.height);
  const auto pixels_wide = static_cast<double>(image.width);
  const Taps lines = taps_of(box.top * pixels_high,
                             box.height * pixels_high / static_cast<double>(height),
                             image.height,
                             height);
  const Taps columns = taps_of(box.left * pixels_wide,
                               box.width * pixels_wide / static_cast<double>(width),
                               image.width,
                               width);
  const int64_t first = lines.pixels.front().first;
  const int64_t end = lines.pixels.back().first + lines.pixels.back().count;
  const std::vector<float> rows = image.is_wide ? scaled_rows<uint16_t>(image, columns, first, end)
                                                : scaled_rows<uint8_t>(image, columns, first, end);
  const auto unit = static_cast<float>(1.0 / image.most());
  const auto row = static_cast<size_t>(image.channels * width);
  for (int64_t y = 0; y < height; ++y) {
    const Taps::Pixel& line = lines.pixels[static_cast<size_t>(y)];
    for (int64_t c = 0; c < image.channels; ++c) {
      float* const out = to + (c * height + y) * width;
      std::fill(out, out + width, 0.0F);
      for (int64_t j = 0; j < line.count; ++j) {
        const float weight = lines.weights[line.weights + static_cast<size_t>(j)] * unit;
        const float* const in = rows.data() + static_cast<size_t>(line.first + j - first) * row +
                                static_cast<size_t>(c * width);
        for (int64_t x = 0; x < width; ++x) {
          out[x] += weight * in[x];
        }
      }
    }
  }
}

}  // namespace rondo
