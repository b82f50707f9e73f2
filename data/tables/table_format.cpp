#include "data/tables/table_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/require.h"
#include "data/tables/header_search.h"
#include "data/tables/table_sample.h"

namespace rondo {

namespace {

constexpr const char* kDelimiters = ",;\t| ";

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
  const size_t width = sample.usual_width();
  if (width < 2) {
    return 0.0;
  }
  double fitting = 0.0;
  double clean = 0.0;
  double cells = 0.0;
  const size_t first = sample.records.size() > 1 ? 1 : 0;
  for (size_t i = first; i < sample.records.size(); ++i) {
    const TableSample::Record& record = sample.records[i];
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
  find_header(file, sample, format, known_names, dialect);
  return dialect;
}

}  // namespace rondo
