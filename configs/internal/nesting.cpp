#include "configs/internal/nesting.h"

#include <algorithm>
#include <string>
#include <vector>

namespace rondo::detail {

namespace {

/// The offset after a string of one line that begins at `begin`, or of its line when it is not
/// closed.
size_t after_short_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      return i + 1;
    }
    if (text[i] == '\n') {
      return i;
    }
    if (text[i] == '\\' && quote == '"') {
      ++i;
    }
  }
  return text.size();
}

/// The same for a string in three quotes; up to two more may stand right before those that end it.
size_t after_long_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 3; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.compare(i, 3, std::string(3, quote)) == 0) {
      const size_t end = std::min(text.find_first_not_of(quote, i), text.size());
      return std::min(end, i + 5);
    }
  }
  return text.size();
}

size_t after_string(std::string_view text, size_t begin) {
  const bool is_long = text.compare(begin, 3, std::string(3, text[begin])) == 0;
  return is_long ? after_long_string(text, begin) : after_short_string(text, begin);
}

}  // namespace

std::optional<size_t> find_too_deep(std::string_view text, size_t deepest) {
  size_t depth = 0;
  std::vector<size_t> outside{0};  // the depth of each open bracket's content, outermost first
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
      case '\'':
        i = after_string(text, i) - 1;
        break;
      case '#':
        i = std::min(text.find('\n', i), text.size()) - 1;
        break;
      case '.':
        ++depth;
        break;
      case '[':
      case '{':
        outside.push_back(++depth);
        break;
      case ']':
      case '}':
        if (outside.size() > 1) {
          outside.pop_back();
        }
        depth = outside.back();
        break;
      case ',':
      case '\n':
        depth = outside.back();
        break;
      default:
        break;
    }
    if (depth > deepest) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace rondo::detail
