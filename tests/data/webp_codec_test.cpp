#include <doctest/doctest.h>
#include <webp/encode.h>

#include <cstdlib>
#include <string>

#include "core/error.h"
#include "data/data_files.h"
#include "data/image_files.h"
#include "data/images/decode.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A file without loss.
std::string webp_bytes(const Image& image) {
  uint8_t* to = nullptr;
  const size_t size = WebPEncodeLosslessRGB(image.bytes.data(),
                                            static_cast<int>(image.width),
                                            static_cast<int>(image.height),
                                            static_cast<int>(image.width * 3),
                                            &to);
  const std::string bytes(reinterpret_cast<const char*>(to), size);
  WebPFree(to);
  return bytes;
}

}  // namespace

TEST_SUITE_BEGIN("data/webp_codec");

TEST_CASE("a WebP file gives the pixels that were written, coloured or grey") {
  const Image image = ramp(13, 21, 3);
  const std::string bytes = webp_bytes(image);
  CHECK(image_size("a.webp", bytes).height == 13);
  CHECK(image_size("a.webp", bytes).width == 21);
  CHECK(decode_image("a.webp", bytes, 3).bytes == image.bytes);
  const Image grey = decode_image("a.webp", bytes, 1);
  CHECK(grey.channels == 1);
  CHECK(grey.bytes.size() == 13 * 21);
  const auto* const last = image.bytes.data() + image.bytes.size() - 3;
  const double expected = 0.2126 * last[0] + 0.7152 * last[1] + 0.0722 * last[2];
  CHECK(std::abs(grey.bytes.back() - expected) <= 0.5);
}

TEST_CASE("a lossy file that claims more pixels than it can hold is refused before decoding") {
  const Image image = ramp(16, 16, 3);
  uint8_t* to = nullptr;
  const size_t size = WebPEncodeRGB(image.bytes.data(), 16, 16, 16 * 3, 80, &to);
  std::string bytes(reinterpret_cast<const char*>(to), size);
  WebPFree(to);
  CHECK(decode_image("a.webp", bytes, 3).width == 16);
  const size_t start = bytes.find("\x9d\x01\x2a");  // the sizes follow, 14 bits each
  REQUIRE(start != std::string::npos);
  bytes.replace(start + 3, 4, "\xff\x3f\xff\x3f");
  CHECK(contains(message_of([&] { image_size("a.webp", bytes); }), "pixels need at least 393216"));
}

TEST_CASE("a file that is cut anywhere, or has any byte changed, is read or refused") {
  const std::string good = webp_bytes(ramp(5, 6, 3));
  const auto read_or_refuse = [](const std::string& bytes) {
    try {
      decode_image("a.webp", bytes, 3);
    } catch (const DataError&) {
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    read_or_refuse(good.substr(0, size));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(~bytes[at]);
    read_or_refuse(bytes);
  }
}

TEST_SUITE_END();
