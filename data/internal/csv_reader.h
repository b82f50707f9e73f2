#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

/// One field of a line.
struct CsvField {
  std::string_view text;  // without blanks and quotes around it
  size_t position;        // in its line, from 1
};

/// Reads a table line by line; lines without anything are left out.
class CsvReader {
 public:
  /// \param file  for messages
  /// \param text  outlives the reader and its fields
  CsvReader(std::string file, std::string_view text, char delimiter);

  /// The fields of the next line; false at the end of the text.
  /// \throws DataError  when a quote is not closed
  bool next(std::vector<CsvField>& fields);

  /// \throws DataError  `file:line:position: message`, for the line that was read last
  [[noreturn]] void fail(size_t position, const std::string& message) const;

 private:
  std::optional<std::string_view> next_line();
  CsvField field_at(std::string_view line, size_t& begin) const;

  std::string file_;
  std::string_view rest_;
  char delimiter_;
  int64_t line_ = 0;
};

}  // namespace rondo::detail
