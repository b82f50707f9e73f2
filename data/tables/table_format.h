#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/tables/cells.h"
#include "data/tables/record_reader.h"

namespace rondo {

/// How a text file writes a table, as far as the user says it: "auto" is found out.
struct TableFormat {
  std::string delimiter = "auto";  ///< "auto" or one character; a blank: any run of blanks
  std::string decimal = "auto";    ///< "auto", "." or ","
  std::string thousands = "auto";  ///< "auto", "none" or one character
  std::string header = "auto";     ///< "auto", "yes" or "no": whether a line names the columns
  std::string encoding = "auto";   ///< "auto", "utf-8" or "latin-1"
  int64_t skip_lines = 0;          ///< lines before the table, >= 0
  std::string comment = {};        ///< lines that begin with it are left out; "": none
  std::vector<std::string> missing_values = {
      "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?"};  ///< beside empty cells
  int64_t max_unpacked_bytes = int64_t{1} << 32;  ///< that a compressed file may become, >= 1
  std::string query = {};                         ///< of an SQLite database; "": the file is text
  bool has_learnt_header = false;  ///< `header` is that of another file: other lines may come first
};

/// \param component  for messages
/// \throws UsageError  when a value is out of its range
void check_format(const std::string& component, const TableFormat& format);

/// How a file writes its table, all found out.
struct TableDialect {
  RecordRules records;
  NumberFormat numbers;
  bool is_text = true;           ///< else rows of JSON or SQLite, which need no dialect
  bool shows_decimal = false;    ///< asked for, or seen in a number
  bool shows_thousands = false;  ///< asked for, or seen in a number
  int64_t skip_lines = 0;        ///< lines before the names, or before the first row
  int64_t first_line = 1;        ///< of the names, or of the first row, from 1
  bool has_header = false;
  std::vector<std::string> names;  ///< of the columns; made up without a header
  std::vector<std::string> notes;  ///< what was decided that may surprise
};

/// "separator ';', decimal comma, names in line 1".
std::string describe(const TableDialect& dialect);

/// Finds out what `format` leaves open, from the begin of the text.
/// \param file         for messages
/// \param known_names  a line that holds one of them names the columns
/// \throws DataError  when two answers fit equally well; names the key to set
TableDialect detect_dialect(const std::string& file,
                            std::string_view text,
                            const TableFormat& format,
                            const std::vector<std::string>& known_names);

}  // namespace rondo
