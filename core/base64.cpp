#include "core/base64.h"

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace rondo {

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[bits >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

std::string from_base64(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find('='));
  const std::string_view padding = text.substr(digits.size());
  if (text.size() % 4 != 0 || (padding != "" && padding != "=" && padding != "==")) {
    throw DataError("expected base64: its length is no multiple of four");
  }
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    const size_t value = kDigits.find(c);
    if (value == std::string_view::npos) {
      throw DataError("expected base64, got another character");
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

}  // namespace rondo
