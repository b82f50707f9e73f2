#include "data/internal/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace rondo::detail {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // spreadsheets begin UTF-8 with it

/// Without the blanks around it; a tab is one unless it separates fields.
std::string_view trimmed(std::string_view text, char delimiter) {
  const char* blanks = delimiter == '\t' ? " \r" : " \t\r";
  const size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos
             ? text.substr(text.size())
             : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

CsvReader::CsvReader(std::string file, std::string_view text, char delimiter)
    : file_(std::move(file)), rest_(text), delimiter_(delimiter) {
  if (rest_.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    rest_.remove_prefix(kByteOrderMark.size());
  }
}

bool CsvReader::next(std::vector<CsvField>& fields) {
  fields.clear();
  const auto line = next_line();
  if (!line) {
    return false;
  }
  size_t begin = 0;
  do {
    fields.push_back(field_at(*line, begin));
  } while (begin <= line->size());
  return true;
}

void CsvReader::fail(size_t position, const std::string& message) const {
  throw DataError(fmt::format("{}:{}:{}: {}", file_, line_, position, message));
}

std::optional<std::string_view> CsvReader::next_line() {
  while (!rest_.empty()) {
    const size_t length = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    ++line_;
    if (!trimmed(line, '\0').empty()) {
      return line;
    }
  }
  return std::nullopt;
}

/// The field that begins at `begin`, which moves behind the delimiter at its end.
CsvField CsvReader::field_at(std::string_view line, size_t& begin) const {
  const size_t start = std::min(line.find_first_not_of(' ', begin), line.size());
  size_t end = start;
  if (start < line.size() && line[start] == '"') {
    end = line.find('"', start + 1);
    if (end == std::string_view::npos) {
      fail(start + 1, "this quote is not closed on its line");
    }
  }
  end = std::min(line.find(delimiter_, end), line.size());
  std::string_view text = trimmed(line.substr(begin, end - begin), delimiter_);
  const auto position = static_cast<size_t>(text.data() - line.data()) + 1;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  begin = end + 1;
  return {text, position};
}

}  // namespace rondo::detail
