#include <cstring>
#include <optional>
#include <utility>

#include "data/images/image_codecs.h"

namespace rondo::detail {

namespace {

constexpr std::string_view kExif("Exif\0\0", 6);
constexpr unsigned kOrientationTag = 0x0112;

/// Reads numbers of a TIFF header's byte order; nothing beyond the end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), is_big_(bytes.substr(0, 2) == "MM") {}

  std::optional<unsigned> at(size_t offset, size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return std::nullopt;
    }
    unsigned value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t place = is_big_ ? i : size - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[offset + place]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_big_;
};

/// The TIFF data of the first EXIF segment.
std::string_view exif_of(std::string_view jpeg) {
  size_t at = 2;  // behind the start of the image
  while (at + 4 <= jpeg.size() && static_cast<unsigned char>(jpeg[at]) == 0xFF) {
    const auto marker = static_cast<unsigned char>(jpeg[at + 1]);
    const size_t size = size_t{static_cast<unsigned char>(jpeg[at + 2])} << 8 |
                        static_cast<unsigned char>(jpeg[at + 3]);
    const bool is_header = marker >= 0xE0 && marker <= 0xFE;  // what may come before the picture
    if (!is_header || size < 2 || at + 2 + size > jpeg.size()) {
      return {};
    }
    const std::string_view content = jpeg.substr(at + 4, size - 2);
    if (marker == 0xE1 && content.substr(0, kExif.size()) == kExif) {
      return content.substr(kExif.size());
    }
    at += 2 + size;
  }
  return {};
}

}  // namespace

int exif_orientation(std::string_view jpeg) {
  constexpr size_t kEntry = 12;
  const Tiff tiff(exif_of(jpeg));
  const size_t directory = tiff.at(4, 4).value_or(0);
  const unsigned entries = tiff.at(directory, 2).value_or(0);
  for (unsigned i = 0; directory > 0 && i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntry;
    if (tiff.at(entry, 2) == kOrientationTag) {
      const unsigned value = tiff.at(entry + 8, 2).value_or(1);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

Image oriented(Image image, int orientation) {
  if (orientation == 1) {
    return image;
  }
  const bool is_on_side = orientation >= 5;
  // Of what is stored, seen from the picture as it is shown.
  const bool flips_rows =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool flips_columns =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image shown = image;
  if (is_on_side) {
    std::swap(shown.height, shown.width);
  }
  const auto pixel = static_cast<size_t>(image.channels * (image.is_wide ? 2 : 1));
  for (int64_t y = 0; y < shown.height; ++y) {
    for (int64_t x = 0; x < shown.width; ++x) {
      int64_t row = is_on_side ? x : y;
      int64_t column = is_on_side ? y : x;
      row = flips_rows ? image.height - 1 - row : row;
      column = flips_columns ? image.width - 1 - column : column;
      std::memcpy(shown.bytes.data() + static_cast<size_t>(y * shown.width + x) * pixel,
                  image.bytes.data() + static_cast<size_t>(row * image.width + column) * pixel,
                  pixel);
    }
  }
  return shown;
}

}  // namespace rondo::detail
