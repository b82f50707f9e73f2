#include "data/images/decode.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "data/data_files.h"
#include "data/image_files.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// The largest difference of two values.
int difference(const Image& a, const Image& b) {
  REQUIRE(a.bytes.size() == b.bytes.size());
  int most = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i) {
    most = std::max(most, std::abs(int{a.bytes[i]} - int{b.bytes[i]}));
  }
  return most;
}

uint8_t value(const Image& image, int64_t y, int64_t x) {
  return image.bytes[static_cast<size_t>((y * image.width + x) * image.channels)];
}

}  // namespace

TEST_SUITE_BEGIN("data/decode");

TEST_CASE("JPEG and PNG files give the pixels that were written, grey and coloured") {
  constexpr int kLoss = 3;  // of a JPEG of quality 100
  for (const int64_t channels : {1, 3}) {
    CAPTURE(channels);
    const Image image = ramp(13, 21, channels);
    const Image jpeg = decode_image("a.jpg", jpeg_bytes(image), channels);
    CHECK(jpeg.height == 13);
    CHECK(jpeg.width == 21);
    CHECK(difference(jpeg, image) <= kLoss);
    CHECK(decode_image("a.png", png_bytes(image), channels).bytes == image.bytes);
    const ImageSize size = image_size("a.png", png_bytes(image));
    CHECK(size.height == 13);
    CHECK(size.width == 21);
  }
}

TEST_CASE("grey becomes coloured, coloured becomes grey, and opacity is left out") {
  const Image grey = ramp(4, 5, 1);
  for (const std::string& file : {jpeg_bytes(grey), png_bytes(grey)}) {
    const Image coloured = decode_image("a", file, 3);
    CHECK(coloured.channels == 3);
    CHECK(std::abs(int{coloured.bytes[4]} - int{grey.bytes[1]}) <= 1);
  }
  Image white{2, 2, 3, false, std::vector<uint8_t>(12, 255)};
  for (const std::string& file : {jpeg_bytes(white), png_bytes(white)}) {
    CHECK(decode_image("a", file, 1).bytes == std::vector<uint8_t>(4, 255));
  }
  const Image with_alpha{1, 2, 4, false, {10, 20, 30, 0, 40, 50, 60, 255}};
  CHECK(decode_image("a.png", png_bytes(with_alpha, true), 3).bytes ==
        std::vector<uint8_t>{10, 20, 30, 40, 50, 60});
}

TEST_CASE("a PNG of 16 bits keeps them") {
  const uint16_t values[] = {0, 1, 258, 65535};
  Image wide{2, 2, 1, true, std::vector<uint8_t>(8)};
  std::memcpy(wide.bytes.data(), values, sizeof values);
  const Image read = decode_image("a.png", png_bytes(wide), 1);
  CHECK(read.is_wide);
  CHECK(read.most() == 65535.0);
  CHECK(read.bytes == wide.bytes);
}

TEST_CASE("inks become colours or greys, also where Adobe inverted them") {
  const uint8_t inks[] = {255, 0, 0, 0};  // cyan
  const uint8_t dark[] = {0, 0, 0, 128};  // half black
  Image plain{16, 16, 4, false, {}};
  for (int i = 0; i < 16 * 16; ++i) {
    const uint8_t* const pixel = i < 8 * 16 ? inks : dark;
    plain.bytes.insert(plain.bytes.end(), pixel, pixel + 4);
  }
  Image inverted = plain;
  for (uint8_t& ink : inverted.bytes) {
    ink = static_cast<uint8_t>(255 - ink);
  }
  for (const std::string& file : {jpeg_bytes_of_inks(plain, Inks::Plain),
                                  jpeg_bytes_of_inks(inverted, Inks::Adobe),
                                  jpeg_bytes_of_inks(inverted, Inks::AdobeYcck)}) {
    constexpr int kLoss = 3;
    const Image coloured = decode_image("a.jpg", file, 3);
    REQUIRE(coloured.bytes.size() == 16 * 16 * 3);
    CHECK(coloured.bytes[0] <= kLoss);
    CHECK(coloured.bytes[1] >= 255 - kLoss);
    CHECK(coloured.bytes[2] >= 255 - kLoss);
    CHECK(std::abs(int{coloured.bytes.back()} - 127) <= kLoss);
    const Image grey = decode_image("a.jpg", file, 1);
    CHECK(std::abs(int{grey.bytes.front()} - 179) <= kLoss);  // 255 (0.587 + 0.114)
    CHECK(std::abs(int{grey.bytes.back()} - 127) <= kLoss);
    CHECK(decode_image("a.jpg", file, 3, 2).height == 8);
  }
}

TEST_CASE("a header that claims more pixels than the file can hold is refused before decoding") {
  const auto error = [](const std::string& bytes) {
    return message_of([&] { image_size("a.img", bytes); });
  };
  const std::string size("\x40\x00\x40\x00", 4);  // 16384 x 16384, which are read of a larger file
  std::string jpeg = jpeg_bytes(ramp(40, 40, 3));
  const size_t frame = jpeg.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, size);
  CHECK(contains(error(jpeg), "16384 x 16384 pixels need at least 3145728 bytes, the file has"));

  std::string png = png_bytes(Image{2, 2, 1, true, std::vector<uint8_t>(8)});
  const std::string long_size("\0\0\x40\0\0\0\x40\0", 8);
  png.replace(16, 8, long_size);
  const auto check = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17));  // of "IHDR" and its content
  for (size_t i = 0; i < 4; ++i) {
    png[29 + i] = static_cast<char>(check >> (24 - 8 * i));
  }
  CHECK(png.size() < 100);
  CHECK(contains(error(png), "16384 x 16384 pixels need at least 520223 bytes, the file has"));
  CHECK_THROWS_AS(decode_image("a.png", png, 1), DataError);

  const Image one_colour{2000, 2000, 3, false, std::vector<uint8_t>(2000 * 2000 * 3, 7)};
  for (const std::string& file : {jpeg_bytes(one_colour), png_bytes(one_colour)}) {
    CHECK(decode_image("a", file, 3).width == 2000);  // nothing is shorter
  }
}

TEST_CASE("a picture is turned as EXIF says") {
  // Bright at the top left as it is stored; where a viewer shows it for each orientation.
  Image image{16, 32, 1, false, std::vector<uint8_t>(512, 0)};
  for (int64_t y = 0; y < 8; ++y) {
    std::fill_n(image.bytes.begin() + y * 32, 8, uint8_t{255});
  }

  const struct {
    int orientation;
    bool is_bottom;
    bool is_right;
  } cases[] = {{1, false, false},
               {2, false, true},
               {3, true, true},
               {4, true, false},
               {5, false, false},
               {6, false, true},
               {7, true, true},
               {8, true, false}};

  for (const auto& [orientation, is_bottom, is_right] : cases) {
    CAPTURE(orientation);
    const std::string file = jpeg_bytes(image, orientation);
    const bool is_on_side = orientation >= 5;
    const ImageSize size = image_size("a.jpg", file);
    CHECK(size.height == (is_on_side ? 32 : 16));
    const Image shown = decode_image("a.jpg", file, 1);
    REQUIRE(shown.height == size.height);
    REQUIRE(shown.width == size.width);
    CHECK(value(shown, is_bottom ? shown.height - 1 : 0, is_right ? shown.width - 1 : 0) > 200);
    CHECK(value(shown, is_bottom ? 0 : shown.height - 1, is_right ? 0 : shown.width - 1) < 50);
    CHECK(value(shown, is_bottom ? 0 : shown.height - 1, is_right ? shown.width - 1 : 0) < 50);
    CHECK(value(shown, is_bottom ? shown.height - 1 : 0, is_right ? 0 : shown.width - 1) < 50);
  }
}

TEST_CASE("a JPEG may be decoded to a part of its size") {
  const Image half = decode_image("a.jpg", jpeg_bytes(ramp(32, 48, 3)), 3, 2);
  CHECK(half.height == 16);
  CHECK(half.width == 24);
  CHECK(decode_image("a.png", png_bytes(ramp(32, 48, 3)), 3, 2).height == 32);
}

TEST_CASE("files of another kind and damaged ones are errors with name and offset") {
  const auto error = [](const std::string& bytes) {
    CHECK_THROWS_AS(decode_image("dir/a.img", bytes, 3), DataError);
    return message_of([&] { decode_image("dir/a.img", bytes, 3); });
  };
  CHECK(contains(error("GIF89a"), "dir/a.img: offset 0: this is not a JPEG, PNG or WebP file"));
  const std::string jpeg = jpeg_bytes(ramp(40, 40, 3));
  CHECK(contains(error(jpeg.substr(0, jpeg.size() - 100)), "damaged or cut off"));
  const std::string png = png_bytes(ramp(40, 40, 3));
  CHECK(contains(error(png.substr(0, png.size() / 2)), "the file ends early"));
  std::string large = png;
  large.replace(16, 8, std::string("\x00\x10\x00\x00\x00\x10\x00\x00", 8));  // 2^20 x 2^20
  CHECK(contains(error(large), "dir/a.img"));
}

TEST_CASE("a file that is cut anywhere, or has any byte changed, is read or refused") {
  for (const std::string& good : {jpeg_bytes(ramp(5, 6, 3), 6), png_bytes(ramp(5, 6, 3))}) {
    const auto read_or_refuse = [](const std::string& bytes) {
      try {
        decode_image("a", bytes, 3);
        image_size("a", bytes);
      } catch (const DataError&) {
      }
    };
    for (size_t size = 0; size < good.size(); ++size) {
      read_or_refuse(good.substr(0, size));
    }
    for (size_t at = 0; at < good.size(); ++at) {
      for (const char other : {'\0', '\x7f', '\xff'}) {
        std::string bytes = good;
        bytes[at] = other;
        read_or_refuse(bytes);
      }
    }
  }
}

TEST_SUITE_END();
