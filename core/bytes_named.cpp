#include "core/bytes_named.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

namespace rondo {

std::optional<int64_t> bytes_named(const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1.0},
                                                       {"B", 1.0},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"KIB", 1024.0},
                                                       {"MIB", 1048576.0},
                                                       {"GIB", 1073741824.0}};
  double number = -1.0;
  const char* const text_end = text.data() + text.size();
  const char* const number_end = std::from_chars(text.data(), text_end, number).ptr;
  std::string unit(number_end, text_end);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  const auto factor = kUnits.find(unit);
  // 2^63: the first number of bytes that is none
  if (!(number > 0.0) || factor == kUnits.end() || !(number * factor->second < 0x1p63)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number * factor->second);
}

}  // namespace rondo
