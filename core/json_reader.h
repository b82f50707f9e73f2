#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

/// Reads JSON of a known shape, value by value. All throw DataError, naming the offset.
/// Source: RFC 8259.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// Calls `read_value(key)` for each key, to read its value.
  void object(const std::function<void(const std::string&)>& read_value);

  /// Calls `read_value()` for each element.
  void array(const std::function<void()>& read_value);

  /// A string; \u escapes become UTF-8, other bytes are taken as they are.
  std::string string();

  /// An integer of 64 bits.
  int64_t integer();

  /// An integer from 0 to 2^63 - 1.
  int64_t unsigned_integer();

  /// A number; nothing for null.
  std::optional<double> number();

  /// Whether the next value is a string.
  bool is_at_string();

  /// The first character of the next value; 0 at the end.
  char next();

  /// A number, true, false or null, as it stands.
  std::string_view word();

  /// Any value, of at most 64 objects and arrays inside each other.
  void skip();

  /// Nothing but white space may follow.
  void end();

 private:
  [[noreturn]] void fail(const std::string& expected) const;
  void skip_space();
  bool take(char c);
  void expect(char c);
  uint32_t hex4();
  void add_escape(std::string& to);
  void skip(int depth);

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace rondo
