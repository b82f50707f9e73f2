#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/tables/table_format.h"

namespace rondo {

/// One column of a table: numbers, or codes of words.
struct TableColumn {
  std::string name;
  bool is_text = false;
  std::vector<double> numbers;     ///< of a column of numbers; NaN where a cell is missing
  std::vector<int32_t> codes;      ///< of a column of text: number of the word; -1: missing
  std::vector<std::string> words;  ///< UTF-8, in the order in which they appeared

  bool is_missing(size_t row) const {
    return is_text ? codes[row] < 0 : numbers[row] != numbers[row];
  }
};

/// How a column is read.
enum class ColumnUse {
  None,  ///< not at all
  Auto,  ///< as numbers, or as text where no cell is a number
  Text   ///< as text
};

/// A table in memory, column by column. Columns that are not used are empty.
class Table {
 public:
  std::vector<TableColumn> columns;
  TableDialect dialect;            ///< of the first file
  std::vector<std::string> notes;  ///< what was decided that may surprise

  int64_t rows() const { return static_cast<int64_t>(offsets_.size()); }

  /// Where a cell stands, and what it holds.
  struct Found {
    std::string place;  ///< file:line:position
    std::string cell;   ///< for messages
  };

  /// Reads the file again.
  Found find(size_t row, size_t column) const;

  struct File {
    std::filesystem::path path;
    size_t first_row;
  };

  /// In the order of their rows.
  const std::vector<File>& files() const { return files_; }

 private:
  friend class TableReading;

  std::vector<File> files_;
  std::vector<uint64_t> offsets_;  // of each row in its file's text
  uint64_t most_unpacked_ = 0;
  std::string query_;
};

/// Which columns are read, and how. \param names  of all columns
using ColumnPlan = std::function<std::vector<ColumnUse>(const TableDialect& dialect)>;

/// Reads a table from one file, or from several with the same columns, in one pass.
/// \param known_names  of columns, where some are known: a line that holds one names the columns
/// \throws DataError  naming file, line and position: of a row with too few or too many fields, of
///                    a column with numbers and text, of an ambiguous format with the key to set.
///                    The first ten places are listed, and how many there are.
Table read_table(const std::vector<std::filesystem::path>& paths,
                 const TableFormat& format,
                 const ColumnPlan& plan,
                 const std::vector<std::string>& known_names = {});

/// Rows in which something is wrong with a column: an error lists the first ten.
class CellFaults {
 public:
  void add(size_t row) {
    if (rows_.size() < kListed) {
      rows_.push_back(row);
    }
    ++count_;
  }

  bool empty() const { return count_ == 0; }

  int64_t count() const { return count_; }

  /// \param expected  "a finite number of float32"
  /// \param advice    what to do; may be ""
  /// \throws DataError
  [[noreturn]] void fail(const Table& table,
                         size_t column,
                         const std::string& expected,
                         const std::string& advice) const;

 private:
  static constexpr size_t kListed = 10;

  std::vector<size_t> rows_;
  int64_t count_ = 0;
};

}  // namespace rondo
