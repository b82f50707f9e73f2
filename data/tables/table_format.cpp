#include "data/tables/table_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/require.h"

namespace rondo {

namespace {

using Record = std::vector<std::string>;

constexpr size_t kSampleBytes = 1 << 18;
constexpr size_t kSampleRecords = 200;
constexpr size_t kLinesBeforeRows = 5;  // looked at for names and for what fits nothing
constexpr const char* kDelimiters = ",;\t| ";

/// The begin of a table, record by record, with the number of the line before each.
struct TableSample {
  std::vector<Record> records;
  std::vector<int64_t> lines_before;
};

TableSample sample_of(const std::string& file,
                      std::string_view text,
                      const RecordRules& rules,
                      int64_t skip_lines) {
  const bool is_cut = text.size() > kSampleBytes;
  RecordReader reader(file, text.substr(0, kSampleBytes), rules);
  reader.skip_lines(skip_lines);
  TableSample sample;
  try {
    std::vector<TableField> fields;
    while (sample.records.size() < kSampleRecords && reader.next(fields)) {
      Record& record = sample.records.emplace_back();
      for (const TableField& field : fields) {
        record.emplace_back(field.text);
      }
      sample.lines_before.push_back(reader.line() - 1);
    }
  } catch (const DataError&) {
    return sample;  // a quote that the cut left open, or one that the whole reading will report
  }
  if (is_cut && sample.records.size() > 1 && sample.records.size() < kSampleRecords) {
    sample.records.pop_back();  // it may be cut
  }
  return sample;
}

/// The number of fields that most records have; the first one counts only when it is alone.
size_t usual_width(const std::vector<Record>& records) {
  std::map<size_t, size_t> counts;
  for (size_t i = records.size() > 1 ? 1 : 0; i < records.size(); ++i) {
    ++counts[records[i].size()];
  }
  const auto most = std::max_element(
      counts.begin(), counts.end(), [](auto a, auto b) { return a.second < b.second; });
  return most == counts.end() ? 0 : most->first;
}

const std::vector<NumberFormat>& number_formats() {
  static const std::vector<NumberFormat> all = {{'.', '\0'},
                                                {',', '\0'},
                                                {'.', ','},
                                                {',', '.'},
                                                {'.', ' '},
                                                {',', ' '},
                                                {'.', '\''},
                                                {',', '\''}};
  return all;
}

bool is_number_anyhow(const std::string& cell) {
  return std::any_of(number_formats().begin(), number_formats().end(), [&](const auto& format) {
    return parse_number(cell, format).has_value();
  });
}

/// Whether a field looks like one field, and not like several of another separator.
bool is_clean(const std::string& cell) {
  if (cell.empty() || is_number_anyhow(cell)) {
    return true;
  }
  if (cell.find_first_of(",;\t|") != std::string::npos) {
    return false;
  }
  return cell.find(' ') == std::string::npos ||
         cell.find_first_not_of("0123456789., -+") != std::string::npos;
}

/// How well a separator fits, in [0, 1]; 0 where it separates nothing.
double fit_of(const TableSample& sample) {
  const size_t width = usual_width(sample.records);
  if (width < 2) {
    return 0.0;
  }
  double fitting = 0.0;
  double clean = 0.0;
  double cells = 0.0;
  const size_t first = sample.records.size() > 1 ? 1 : 0;
  for (size_t i = first; i < sample.records.size(); ++i) {
    const Record& record = sample.records[i];
    fitting += record.size() == width ? 1.0 : 0.0;
    cells += static_cast<double>(record.size());
    clean += static_cast<double>(std::count_if(record.begin(), record.end(), is_clean));
  }
  return fitting / static_cast<double>(sample.records.size() - first) * clean / cells;
}

std::string name_of(char separator) {
  switch (separator) {
    case '\t':
      return "tab";
    case ' ':
      return "blanks";
    default:
      return fmt::format("'{}'", separator);
  }
}

char detect_delimiter(const std::string& file, std::string_view text, const TableFormat& format) {
  if (format.delimiter != "auto") {
    return format.delimiter[0];
  }
  double best_fit = 0.0;
  std::string best;
  for (const char* delimiter = kDelimiters; *delimiter != '\0'; ++delimiter) {
    const double fit =
        fit_of(sample_of(file, text, {*delimiter, format.comment}, format.skip_lines));
    constexpr double kEqual = 1e-9;
    if (fit > best_fit + kEqual) {
      best_fit = fit;
      best.assign(1, *delimiter);
    } else if (fit > 0.0 && fit > best_fit - kEqual && *delimiter != ' ') {
      best += *delimiter;  // blanks also stand within fields
    }
  }
  if (best.size() > 1) {
    throw DataError(fmt::format("{}: the separators {} and {} fit equally well; set delimiter",
                                file,
                                name_of(best[0]),
                                name_of(best[1])));
  }
  return best.empty() ? ',' : best[0];
}

/// Cells that are made of what numbers are made of.
std::vector<std::string> numeric_cells(const TableSample& sample) {
  std::vector<std::string> cells;
  for (size_t i = sample.records.size() > 1 ? 1 : 0; i < sample.records.size(); ++i) {
    for (const std::string& cell : sample.records[i]) {
      const bool is_numeric = cell.find_first_of("0123456789") != std::string::npos &&
                              cell.find_first_not_of("0123456789+-.,eE' ") == std::string::npos;
      if (is_numeric) {
        cells.push_back(cell);
      }
    }
  }
  return cells;
}

bool is_allowed(const NumberFormat& numbers, const TableFormat& format) {
  const bool fits_decimal = format.decimal == "auto" || format.decimal[0] == numbers.decimal;
  const char thousands = format.thousands == "none" ? '\0' : format.thousands[0];
  return fits_decimal && (format.thousands == "auto" || thousands == numbers.thousands);
}

NumberFormat best_numbers(const std::string& file,
                          const std::vector<std::string>& cells,
                          const TableFormat& format) {
  if (format.decimal != "auto" && format.thousands != "auto") {
    return {format.decimal[0], format.thousands == "none" ? '\0' : format.thousands[0]};
  }
  const auto parsed = [&](const NumberFormat& numbers) {
    return std::count_if(cells.begin(), cells.end(), [&](const std::string& cell) {
      return parse_number(cell, numbers).has_value();
    });
  };
  std::optional<NumberFormat> best;
  int64_t most = -1;
  bool is_unclear = false;
  for (const NumberFormat& numbers : number_formats()) {
    if (!is_allowed(numbers, format)) {
      continue;
    }
    const int64_t count = parsed(numbers);
    if (count > most) {
      best = numbers;
      most = count;
      is_unclear = false;
    } else if (count == most && best->decimal == ',' && best->thousands == '\0' &&
               numbers.thousands == ',') {
      is_unclear = true;  // 1,234
    }
  }
  if (is_unclear) {
    throw DataError(
        fmt::format("{}: the comma in numbers can be a decimal comma or a thousands separator; set "
                    "decimal = \",\" or thousands = \",\"",
                    file));
  }
  const char decimal = format.decimal == "auto" ? '.' : format.decimal[0];
  const char thousands =
      format.thousands == "auto" || format.thousands == "none" ? '\0' : format.thousands[0];
  return best.value_or(NumberFormat{decimal, thousands});
}

void detect_numbers(const std::string& file,
                    const TableSample& sample,
                    const TableFormat& format,
                    TableDialect& dialect) {
  const std::vector<std::string> cells = numeric_cells(sample);
  const NumberFormat numbers = best_numbers(file, cells, format);
  const auto shows = [&](char mark) {
    return std::any_of(cells.begin(), cells.end(), [&](const std::string& cell) {
      return cell.find(mark) != std::string::npos && parse_number(cell, numbers);
    });
  };
  dialect.numbers = numbers;
  dialect.shows_thousands =
      format.thousands != "auto" || (numbers.thousands != '\0' && shows(numbers.thousands));
  const bool is_other_mark = numbers.thousands == '.' || numbers.thousands == ',';
  dialect.shows_decimal = format.decimal != "auto" || shows(numbers.decimal) ||
                          (dialect.shows_thousands && is_other_mark);
}

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
        width_(usual_width(sample.records)) {}

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

void check_format(const std::string& component, const TableFormat& format) {
  const auto require =
      [&](bool holds, const char* key, const char* rule, const std::string& value) {
        detail::require(holds, component + ": " + key, rule, "\"" + value + "\"");
      };
  const auto is_character = [](const std::string& text) {
    return text.size() == 1 && text != "\"" && text != "\n" && text != "\r";
  };
  require(format.delimiter == "auto" || is_character(format.delimiter),
          "delimiter",
          "\"auto\" or one character other than a quote",
          format.delimiter);
  require(format.decimal == "auto" || format.decimal == "." || format.decimal == ",",
          "decimal",
          "\"auto\", \".\" or \",\"",
          format.decimal);
  require(format.thousands == "auto" || format.thousands == "none" ||
              (is_character(format.thousands) && format.thousands != format.decimal),
          "thousands",
          "\"auto\", \"none\" or one character other than the decimal one",
          format.thousands);
  require(format.header == "auto" || format.header == "yes" || format.header == "no",
          "header",
          "\"auto\", \"yes\" or \"no\"",
          format.header);
  require(format.encoding == "auto" || format.encoding == "utf-8" || format.encoding == "latin-1",
          "encoding",
          "\"auto\", \"utf-8\" or \"latin-1\"",
          format.encoding);
  detail::require(format.skip_lines >= 0, component + ": skip_lines", ">= 0", format.skip_lines);
  detail::require(format.max_unpacked_bytes >= 1,
                  component + ": max_unpacked_bytes",
                  ">= 1",
                  format.max_unpacked_bytes);
}

std::string describe(const TableDialect& dialect) {
  std::string text = fmt::format("separator {}, decimal {}",
                                 name_of(dialect.records.delimiter),
                                 dialect.numbers.decimal == ',' ? "comma" : "point");
  if (dialect.numbers.thousands != '\0') {
    text += fmt::format(", thousands by '{}'", dialect.numbers.thousands);
  }
  return text + (dialect.has_header ? fmt::format(", names in line {}", dialect.first_line)
                                    : ", no line of names");
}

TableDialect detect_dialect(const std::string& file,
                            std::string_view text,
                            const TableFormat& format,
                            const std::vector<std::string>& known_names) {
  TableDialect dialect;
  dialect.records = {detect_delimiter(file, text, format), format.comment};
  dialect.skip_lines = format.skip_lines;
  const TableSample sample = sample_of(file, text, dialect.records, format.skip_lines);
  detect_numbers(file, sample, format, dialect);
  HeaderSearch(file, sample, format, dialect.numbers, known_names).find(format, dialect);
  return dialect;
}

}  // namespace rondo
