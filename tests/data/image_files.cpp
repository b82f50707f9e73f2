#include "data/image_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <jpeglib.h>

#include <png.h>

namespace rondo::test {

namespace {

/// \param change  called with the settings before the first row
template <class Change>
std::string written_jpeg(const Image& image,
                         J_COLOR_SPACE colours,
                         const std::string& exif,
                         Change change) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = colours;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  change(info);
  for (int i = 0; i < info.num_components; ++i) {  // no colours are shared by neighbours
    info.comp_info[i].h_samp_factor = 1;
    info.comp_info[i].v_samp_factor = 1;
  }
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty()) {
    jpeg_write_marker(&info,
                      JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::vector<uint8_t> pixels = image.bytes;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + info.next_scanline * static_cast<size_t>(image.width) *
                                       static_cast<size_t>(image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

struct PngKind {
  int colour_type = PNG_COLOR_TYPE_GRAY;
  int bits = 8;
};

std::string written_png(const Image& image, PngKind kind) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string file;
  png_set_write_fn(
      png,
      &file,
      [](png_structp to, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))
            ->append(reinterpret_cast<const char*>(bytes), size);
      },
      nullptr);
  png_set_IHDR(png,
               info,
               static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height),
               kind.bits,
               kind.colour_type,
               PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(size_t{1} << std::min(kind.bits, 8));
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    for (size_t i = 0; i < palette.size(); ++i) {
      palette[i] = {255, static_cast<png_byte>(255 - i), static_cast<png_byte>(i)};
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  }
  png_write_info(png, info);
  png_set_packing(png);
  if (image.is_wide) {
    png_set_swap(png);
  }
  const size_t row = static_cast<size_t>(image.width * image.channels) * (image.is_wide ? 2 : 1);
  for (int64_t y = 0; y < image.height; ++y) {
    png_write_row(png, image.bytes.data() + static_cast<size_t>(y) * row);
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace

std::string jpeg_bytes(const Image& image, int orientation) {
  std::string exif;
  if (orientation > 0) {
    exif = std::string("Exif\0\0II*\0\10\0\0\0\1\0\x12\x01\3\0\1\0\0\0", 24);
    exif += static_cast<char>(orientation);
    exif += std::string(7, '\0');
  }
  const J_COLOR_SPACE colours = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  return written_jpeg(image, colours, exif, [](jpeg_compress_struct&) {});
}

std::string jpeg_bytes_of_inks(const Image& image, Inks kind) {
  return written_jpeg(image, JCS_CMYK, "", [kind](jpeg_compress_struct& info) {
    if (kind == Inks::AdobeYcck) {
      jpeg_set_colorspace(&info, JCS_YCCK);
    }
    info.write_Adobe_marker = kind == Inks::Plain ? FALSE : TRUE;
  });
}

std::string png_bytes(const Image& image, bool has_alpha) {
  const int64_t colours = image.channels - (has_alpha ? 1 : 0);
  const int type =
      (colours == 3 ? PNG_COLOR_MASK_COLOR : 0) | (has_alpha ? PNG_COLOR_MASK_ALPHA : 0);
  return written_png(image, {type, image.is_wide ? 16 : 8});
}

std::string png_bytes_of_palette(const Image& numbers, int bits) {
  return written_png(numbers, {PNG_COLOR_TYPE_PALETTE, bits});
}

Image ramp(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, false, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        image.bytes.push_back(
            static_cast<uint8_t>((y * 120 / height + x * 80 / width + c * 25) & 0xFF));
      }
    }
  }
  return image;
}

}  // namespace rondo::test
