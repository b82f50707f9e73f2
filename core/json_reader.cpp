#include "core/json_reader.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "core/error.h"

namespace rondo {

namespace {

void add_utf8(std::string& to, uint32_t code) {
  const auto add = [&to](uint32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonReader::fail(const std::string& expected) const {
  throw DataError(fmt::format("expected {} at byte {} of the JSON", expected, position_));
}

void JsonReader::skip_space() {
  while (position_ < text_.size() &&
         std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) {
    ++position_;
  }
}

bool JsonReader::take(char c) {
  skip_space();
  if (position_ < text_.size() && text_[position_] == c) {
    ++position_;
    return true;
  }
  return false;
}

void JsonReader::expect(char c) {
  if (!take(c)) {
    fail(std::string("\"") + c + "\"");
  }
}

void JsonReader::object(const std::function<void(const std::string&)>& read_value) {
  expect('{');
  if (take('}')) {
    return;
  }
  do {
    const std::string key = string();
    expect(':');
    read_value(key);
  } while (take(','));
  expect('}');
}

void JsonReader::array(const std::function<void()>& read_value) {
  expect('[');
  if (take(']')) {
    return;
  }
  do {
    read_value();
  } while (take(','));
  expect(']');
}

std::string JsonReader::string() {
  expect('"');
  std::string value;
  while (position_ < text_.size() && text_[position_] != '"') {
    const char c = text_[position_];
    if (static_cast<unsigned char>(c) < ' ') {
      fail("no control character");
    }
    ++position_;
    if (c == '\\') {
      add_escape(value);
    } else {
      value.push_back(c);
    }
  }
  expect('"');
  return value;
}

void JsonReader::add_escape(std::string& to) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const char c = position_ < text_.size() ? text_[position_++] : '\0';
  if (const size_t at = kNames.find(c); at != std::string_view::npos && c != '\0') {
    to.push_back(kValues[at]);
    return;
  }
  if (c != 'u') {
    fail("an escape");
  }
  uint32_t code = hex4();
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(position_, 2) != "\\u") {
      fail("the second half of a surrogate pair");
    }
    position_ += 2;
    const uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) {
      fail("the second half of a surrogate pair before this");
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  add_utf8(to, code);
}

uint32_t JsonReader::hex4() {
  const std::string_view digits = text_.substr(position_, 4);
  uint32_t code = 0;
  const char* end = digits.data() + digits.size();
  if (digits.size() != 4 || std::from_chars(digits.data(), end, code, 16).ptr != end) {
    fail("four hexadecimal digits");
  }
  position_ += 4;
  return code;
}

int64_t JsonReader::integer() {
  skip_space();
  const std::string_view rest = text_.substr(position_);
  int64_t value = 0;
  const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (result.ec != std::errc()) {
    fail("an integer");
  }
  position_ += static_cast<size_t>(result.ptr - rest.data());
  return value;
}

int64_t JsonReader::unsigned_integer() {
  skip_space();
  if (position_ < text_.size() && text_[position_] == '-') {
    fail("an integer from 0 on");
  }
  return integer();
}

std::optional<double> JsonReader::number() {
  skip_space();
  const std::string_view rest = text_.substr(position_);
  if (rest.substr(0, 4) == "null") {
    position_ += 4;
    return std::nullopt;
  }
  double value = 0.0;
  const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (result.ec != std::errc()) {
    fail("a number or null");
  }
  position_ += static_cast<size_t>(result.ptr - rest.data());
  return value;
}

bool JsonReader::is_at_string() {
  skip_space();
  return position_ < text_.size() && text_[position_] == '"';
}

char JsonReader::next() {
  skip_space();
  return position_ < text_.size() ? text_[position_] : '\0';
}

std::string_view JsonReader::word() {
  skip_space();
  const size_t begin = position_;
  const auto is_in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  };
  while (position_ < text_.size() && is_in_word(text_[position_])) {
    ++position_;
  }
  if (position_ == begin) {
    fail("a value");
  }
  return text_.substr(begin, position_ - begin);
}

void JsonReader::skip() {
  skip(0);
}

void JsonReader::skip(int depth) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) {
    fail("fewer values inside each other");
  }
  skip_space();
  const char next = position_ < text_.size() ? text_[position_] : '\0';
  if (next == '{') {
    object([&](const std::string&) { skip(depth + 1); });
  } else if (next == '[') {
    array([&] { skip(depth + 1); });
  } else if (next == '"') {
    string();
  } else if (text_.substr(position_, 4) == "true") {
    position_ += 4;
  } else if (text_.substr(position_, 5) == "false") {
    position_ += 5;
  } else {
    number();
  }
}

void JsonReader::end() {
  skip_space();
  if (position_ != text_.size()) {
    fail("the end");
  }
}

}  // namespace rondo
