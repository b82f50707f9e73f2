#include "core/media.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace rondo {

namespace {

at::Tensor on_host(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.detach().to(at::kCPU).to(type).contiguous();
}

/// [height, width, channels] of a tensor that `picture_of` takes.
at::Tensor channels_last(const at::Tensor& pixels) {
  const auto is_channels = [](int64_t size) { return size == 1 || size == 3; };
  if (pixels.dim() == 2) {
    return pixels.unsqueeze(2);
  }
  if (pixels.dim() == 3 && is_channels(pixels.size(0))) {
    return pixels.permute({1, 2, 0});
  }
  if (pixels.dim() == 3 && is_channels(pixels.size(2))) {
    return pixels;
  }
  throw ShapeError(
      fmt::format("a picture has shape [height, width], [channels, height, width] or [height, "
                  "width, channels] with 1 or 3 channels, got [{}]",
                  fmt::join(pixels.sizes(), ", ")));
}

/// Numbers as bytes from black to white.
at::Tensor as_bytes(const at::Tensor& pixels) {
  if (pixels.scalar_type() == at::kByte || pixels.numel() == 0) {
    return on_host(pixels, at::kByte);
  }
  const at::Tensor values = on_host(pixels, at::kDouble);
  const double* const begin = values.data_ptr<double>();
  const auto number = [&](int64_t i) { return std::isfinite(begin[i]) ? begin[i] : 0.0; };
  double least = number(0);
  double most = least;
  for (int64_t i = 1; i < values.numel(); ++i) {
    least = std::min(least, number(i));
    most = std::max(most, number(i));
  }
  const double scale = most > least ? 255.0 / (most - least) : 0.0;
  at::Tensor bytes = at::empty(values.sizes(), at::kByte);
  for (int64_t i = 0; i < values.numel(); ++i) {
    bytes.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(std::lround((number(i) - least) * scale));
  }
  return bytes;
}

}  // namespace

Histogram histogram_of(const at::Tensor& tensor, int64_t buckets) {
  const at::Tensor values = on_host(tensor, at::kDouble);
  const double* const begin = values.data_ptr<double>();
  const double* const end = begin + values.numel();
  Histogram found;
  bool is_first = true;
  for (const double* value = begin; value != end; ++value) {
    if (!std::isfinite(*value)) {
      ++found.not_finite;
      continue;
    }
    found.least = is_first ? *value : std::min(found.least, *value);
    found.most = is_first ? *value : std::max(found.most, *value);
    found.sum += *value;
    found.sum_of_squares += *value * *value;
    ++found.count;
    is_first = false;
  }
  if (found.count == 0) {
    return found;
  }
  const int64_t number = found.most > found.least ? buckets : 1;
  const double width = (found.most - found.least) / static_cast<double>(number);
  for (int64_t i = 0; i <= number; ++i) {
    found.edges.push_back(i == number ? found.most : found.least + width * static_cast<double>(i));
  }
  found.counts.assign(static_cast<size_t>(number), 0);
  for (const double* value = begin; value != end; ++value) {
    if (std::isfinite(*value)) {
      const double place = width > 0.0 ? (*value - found.least) / width : 0.0;
      const double last = static_cast<double>(number - 1);
      ++found.counts[static_cast<size_t>(std::clamp(place, 0.0, last))];
    }
  }
  return found;
}

Picture picture_of(const at::Tensor& pixels) {
  const at::Tensor bytes = as_bytes(channels_last(pixels)).contiguous();
  const uint8_t* const first = bytes.data_ptr<uint8_t>();
  return {bytes.size(0), bytes.size(1), bytes.size(2), {first, first + bytes.numel()}};
}

}  // namespace rondo
