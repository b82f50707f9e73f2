#include "data/tables/header_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"

namespace rondo {

namespace {

using Record = TableSample::Record;

constexpr size_t kLinesBeforeRows = 5;  // looked at for names and for what fits nothing

/// Which of the first lines names the columns, if one does.
class HeaderSearch {
 public:
  HeaderSearch(const std::string& file,
               const TableSample& sample,
               const TableFormat& format,
               const NumberFormat& numbers,
               const std::vector<std::string>& known_names)
      : file_(file),
        sample_(sample),
        numbers_(numbers),
        missing_(format.missing_values),
        known_names_(known_names),
        width_(sample.usual_width()) {}

  /// Sets `skip_lines`, `has_header`, `names` and adds notes.
  void find(const TableFormat& wanted, TableDialect& dialect) const {
    const size_t count = std::min(kLinesBeforeRows, sample_.records.size());
    if (wanted.header != "auto" && !wanted.has_learnt_header) {
      take(dialect, 0, wanted.header == "yes");
      return;
    }
    if (wanted.header == "no") {
      take(dialect, first_row(count), false);
      return;
    }
    for (size_t k = 0; k < count; ++k) {
      if (holds_known_name(sample_.records[k])) {
        take(dialect, k, true);
        return;
      }
    }
    for (size_t k = 0; k < count; ++k) {
      switch (kind_of(k)) {
        case Line::Names:
          take(dialect, k, true);
          return;
        case Line::Row:
          take(dialect, k, false);
          return;
        case Line::Other:
          break;
      }
    }
    take(dialect, 0, false);
  }

 private:
  enum class Line { Names, Row, Other };

  bool is_text(const std::string& cell) const {
    return !missing_.contains(cell) && !parse_number(cell, numbers_);
  }

  bool is_number(const std::string& cell) const {
    return !missing_.contains(cell) && parse_number(cell, numbers_);
  }

  bool holds_known_name(const Record& record) const {
    return std::any_of(known_names_.begin(), known_names_.end(), [&](const std::string& name) {
      return std::find(record.begin(), record.end(), name) != record.end();
    });
  }

  /// The first line that can be a row; one of the usual width where none can.
  size_t first_row(size_t count) const {
    for (size_t k = 0; k < count; ++k) {
      if (fits_rows(k)) {
        return k;
      }
    }
    for (size_t k = 0; k < count; ++k) {
      if (sample_.records[k].size() == width_) {
        return k;
      }
    }
    return 0;
  }

  /// The columns that hold numbers alone from record `first` on.
  std::set<size_t> numeric_columns(size_t first) const {
    std::set<size_t> numeric;
    std::set<size_t> others;
    for (size_t i = first; i < sample_.records.size(); ++i) {
      const Record& record = sample_.records[i];
      for (size_t c = 0; c < record.size() && record.size() == width_; ++c) {
        if (is_number(record[c])) {
          numeric.insert(c);
        } else if (is_text(record[c])) {
          others.insert(c);
        }
      }
    }
    for (const size_t c : others) {
      numeric.erase(c);
    }
    return numeric;
  }

  static bool are_distinct(const Record& record) {
    return std::set<std::string>(record.begin(), record.end()).size() == record.size();
  }

  bool are_names(const Record& record) const {
    const auto texts = std::count_if(
        record.begin(), record.end(), [this](const auto& cell) { return is_text(cell); });
    const auto empty = std::count(record.begin(), record.end(), "");
    return empty <= 1 && texts > 0 && texts + empty == static_cast<int64_t>(record.size()) &&
           are_distinct(record);
  }

  /// As many cells as the rows below, and no text where they have numbers.
  bool fits_rows(size_t k) const {
    const Record& record = sample_.records[k];
    const std::set<size_t> numeric = numeric_columns(k + 1);
    return record.size() == width_ && std::none_of(numeric.begin(), numeric.end(), [&](size_t c) {
             return is_text(record[c]);
           });
  }

  Line kind_of(size_t k) const {
    const Record& record = sample_.records[k];
    const std::set<size_t> numeric = numeric_columns(k + 1);
    const bool is_last = k + 1 == sample_.records.size();
    const bool has_row_names = record.size() + 1 == width_;
    if (are_names(record) && (record.size() == width_ || has_row_names)) {
      if (numeric.empty() && !is_last) {
        throw DataError(fmt::format(
            "{}:{}: the line can name the columns or be a row, since all columns hold text; set "
            "header = \"yes\" or \"no\"",
            file_,
            sample_.lines_before[k] + 1));
      }
      return Line::Names;
    }
    const bool fits = fits_rows(k);
    const bool is_before_names =
        k + 2 < sample_.records.size() && sample_.records[k + 1].size() == width_ &&
        are_names(sample_.records[k + 1]) && !numeric_columns(k + 2).empty();
    return fits && !is_before_names ? Line::Row : Line::Other;
  }

  void take(TableDialect& dialect, size_t k, bool is_header) const {
    if (sample_.records.empty()) {
      return;
    }
    dialect.has_header = is_header;
    for (size_t i = 0; i < k; ++i) {
      dialect.notes.push_back(fmt::format("line {} does not fit the columns and is skipped: {}",
                                          sample_.lines_before[i] + 1,
                                          shown_cell(fmt::format("{}", join(sample_.records[i])))));
    }
    dialect.skip_lines = k == 0 ? dialect.skip_lines : sample_.lines_before[k];
    dialect.first_line = sample_.lines_before[k] + 1;
    const Record& record = sample_.records[k];
    if (is_header) {
      dialect.names = record;
      if (record.size() + 1 == width_ && sample_.records.size() > k + 2) {
        dialect.names.insert(dialect.names.begin(), "row_name");
        dialect.notes.emplace_back(
            "the line of names has one field less than the rows: the first column is called "
            "row_name");
      }
    } else {
      dialect.names.resize(record.size());
    }
    for (size_t i = 0; i < dialect.names.size(); ++i) {
      if (dialect.names[i].empty()) {
        dialect.names[i] = fmt::format("column{}", i + 1);
      }
    }
  }

  static std::string join(const Record& record) {
    std::string text;
    for (const std::string& cell : record) {
      text += (text.empty() ? "" : ",") + cell;
    }
    return text;
  }

  const std::string& file_;
  const TableSample& sample_;
  NumberFormat numbers_;
  MissingWords missing_;
  const std::vector<std::string>& known_names_;
  size_t width_;
};

}  // namespace

void find_header(const std::string& file,
                 const TableSample& sample,
                 const TableFormat& format,
                 const std::vector<std::string>& known_names,
                 TableDialect& dialect) {
  HeaderSearch(file, sample, format, dialect.numbers, known_names).find(format, dialect);
}

}  // namespace rondo
