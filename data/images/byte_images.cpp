#include "data/images/byte_images.h"

#include "data/batch_memory.h"
#include "data/internal/rows.h"

namespace rondo {

PixelValues pixel_values(double mean, double std) {
  PixelValues values{};
  for (size_t byte = 0; byte < values.size(); ++byte) {
    values[byte] = static_cast<float>((static_cast<double>(byte) / 255.0 - mean) / std);
  }
  return values;
}

Batch ByteImages::gather(const std::vector<int64_t>& indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  at::Tensor image = batch_tensor({count, shape[0], shape[1], shape[2]}, at::kFloat);
  at::Tensor label = batch_tensor({count}, at::kLong);
  const int64_t plane = shape[1] * shape[2];
  auto* out = image.data_ptr<float>();
  auto* label_out = label.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    detail::check_index(index, size());
    const uint8_t* pixel = pixels.data() + index * shape[0] * plane;
    for (const PixelValues& value_of : values) {
      for (int64_t i = 0; i < plane; ++i) {
        *out++ = value_of[*pixel++];
      }
    }
    *label_out++ = labels[static_cast<size_t>(index)];
  }
  return {{"image", image}, {"label", label}};
}

}  // namespace rondo
