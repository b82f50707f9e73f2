#include "core/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/utf8.h"

namespace rondo {

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const size_t size = utf8_length(text);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else if (size == 0) {
      quoted += "\xEF\xBF\xBD";
    } else {
      quoted += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return quoted + "\"";
}

std::string json_number(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

std::string json_any_number(double number) {
  if (std::isfinite(number)) {
    return json_number(number);
  }
  return std::isnan(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"";
}

}  // namespace rondo
