#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// One field of a record.
struct TableField {
  std::string_view text;  ///< without blanks and quotes around it; until the next record is read
  size_t position = 0;    ///< in its line, from 1
  bool is_quoted = false;
};

/// What divides a text into records and fields.
struct RecordRules {
  char delimiter = ',';      ///< ' ' stands for any run of blanks
  std::string comment = {};  ///< lines that begin with it are left out; "": none
};

/// Reads records one after the other, as RFC 4180 has them: a field in quotes can hold delimiters,
/// line ends and doubled quotes. Lines without anything are left out. Blanks around fields do not
/// count. Source: RFC 4180.
class RecordReader {
 public:
  static constexpr size_t kMostFields = 65536;

  /// \param file  for messages
  /// \param text  outlives the reader and its fields
  RecordReader(std::string file, std::string_view text, RecordRules rules);

  /// Leaves out lines, whatever they hold.
  void skip_lines(int64_t count);

  /// Goes on at `offset` of the text, the begin of a line.
  void seek(size_t offset);

  /// The fields of the next record; false at the end of the text.
  /// \throws DataError  when a quote is not closed or closes within a field, or at too many fields
  bool next(std::vector<TableField>& fields);

  /// Of the record that was read last: where it begins in the text, and its first line, from 1.
  size_t offset() const { return record_offset_; }

  int64_t line() const { return record_line_; }

  /// The line that a field of the last record stands in; differs where quotes hold line ends.
  int64_t last_line() const { return line_; }

  /// \throws DataError  `file:line:position: message`, for the line that was read last
  [[noreturn]] void fail(size_t position, const std::string& message) const;

 private:
  bool begin_record();
  void begin_line(const char* at);
  const char* read_field(const char* at, TableField& field);
  const char* read_quoted(const char* at, TableField& field);
  const char* read_plain(const char* at, TableField& field) const;
  const char* skip_blanks(const char* at) const;

  size_t position_of(const char* at) const { return static_cast<size_t>(at - line_begin_) + 1; }

  bool is_blank(char c) const { return c == ' ' || (c == '\t' && rules_.delimiter != '\t'); }

  bool ends_field(char c) const { return ends_[static_cast<unsigned char>(c)]; }

  std::string file_;
  RecordRules rules_;
  std::array<bool, 256> ends_{};  // whether a byte ends a field
  const char* begin_;
  const char* at_;
  const char* end_;
  const char* line_begin_;
  int64_t line_ = 0;
  size_t record_offset_ = 0;
  int64_t record_line_ = 0;
  std::deque<std::string> unescaped_;  // fields of the record with doubled quotes
};

}  // namespace rondo
