#include "data/tables/json_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "core/error.h"
#include "core/json_reader.h"

namespace rondo {

namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The object of one line.
class Line {
 public:
  Line(const std::string& file, int64_t number, std::string_view text)
      : file_(file), number_(number), text_(text) {}

  /// Calls `take(key, cell)` for each key.
  void read(const std::function<void(const std::string&, std::string)>& take) {
    require('{');
    skip_space();
    if (peek() == '}') {
      ++at_;
    } else {
      bool has_more = true;
      while (has_more) {
        skip_space();
        const std::string key = string();
        require(':');
        take(key, value(key));
        skip_space();
        has_more = peek() == ',';
        has_more ? void(++at_) : require('}');
      }
    }
    skip_space();
    if (at_ != text_.size()) {
      fail("nothing after the object");
    }
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw DataError(
        fmt::format("{}:{}:{}: expected {} in a line of JSON", file_, number_, at_ + 1, expected));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (kSpace.find(peek()) != std::string_view::npos && at_ < text_.size()) {
      ++at_;
    }
  }

  void require(char c) {
    skip_space();
    if (peek() != c) {
      fail(fmt::format("\"{}\"", c));
    }
    ++at_;
  }

  /// The bytes of a string, its quotes included, are found here; JsonReader knows its escapes.
  std::string string() {
    if (peek() != '"') {
      fail("a text in quotes");
    }
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size()) {
      fail("a text that ends");
    }
    const std::string_view whole = text_.substr(at_, end + 1 - at_);
    try {
      std::string text = JsonReader(whole).string();
      at_ = end + 1;
      return text;
    } catch (const DataError&) {
      fail("a text with escapes of JSON");
    }
  }

  std::string value(const std::string& key) {
    skip_space();
    if (peek() == '"') {
      return quoted_cell(string());
    }
    const size_t end = std::min(text_.find_first_of(",} \t\r", at_), text_.size());
    const std::string word(text_.substr(at_, end - at_));
    const bool is_number = !word.empty() &&
                           (word[0] == '-' || (word[0] >= '0' && word[0] <= '9')) &&
                           word.find_first_not_of("-+.0123456789eE") == std::string::npos;
    if (!is_number && word != "true" && word != "false" && word != "null") {
      fail(fmt::format("a text, a number, true, false or null as \"{}\"", key));
    }
    at_ = end;
    return word == "null" ? "" : word;
  }

  const std::string& file_;
  int64_t number_;
  std::string_view text_;
  size_t at_ = 0;
};

/// Calls `read(line)` for each line, empty where there is nothing in it.
void for_lines(std::string_view text, const std::function<void(int64_t, std::string_view)>& read) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    read(++number, trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

}  // namespace

bool is_json_lines(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

TextRows read_json_lines(const std::string& file, std::string_view text, uint64_t most) {
  TextRows lines;
  std::unordered_map<std::string, size_t> numbers;
  for_lines(text, [&](int64_t number, std::string_view line) {
    if (!line.empty()) {
      Line(file, number, line).read([&](const std::string& key, const std::string&) {
        if (numbers.emplace(key, lines.names.size()).second) {
          lines.names.push_back(key);
        }
      });
    }
  });
  // Lines with keys of their own alone would have a table that is the square of the file.
  constexpr uint64_t kMostGrown = 64;
  const uint64_t limit = std::min(most, kMostGrown * (text.size() + kMostGrown));
  std::vector<std::string> cells(lines.names.size());
  std::vector<int64_t> set_in(lines.names.size(), 0);  // the line in which a cell was set last
  for_lines(text, [&](int64_t number, std::string_view line) {
    if (!line.empty()) {
      Line reading(file, number, line);
      reading.read([&](const std::string& key, std::string cell) {
        const size_t column = numbers.at(key);
        if (set_in[column] == number) {
          reading.fail(fmt::format("the key \"{}\" once", key));
        }
        set_in[column] = number;
        cells[column] = std::move(cell);
      });
      for (size_t c = 0; c < cells.size(); ++c) {
        lines.rows += c == 0 ? "" : ",";
        // A row of one empty cell would be an empty line, which is no row.
        const bool is_alone = cells.size() == 1;
        lines.rows += set_in[c] == number && !cells[c].empty() ? cells[c] : is_alone ? "\"\"" : "";
      }
    }
    lines.rows += '\n';
    if (lines.rows.size() > limit) {
      throw DataError(
          fmt::format("{}:{}: its rows take more than {} bytes: raise max_unpacked_bytes, or let "
                      "lines have the "
                      "same keys",
                      file,
                      number,
                      limit));
    }
  });
  return lines;
}

}  // namespace rondo
