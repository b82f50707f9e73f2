#include "data/tables/column_numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "data/tables/date_order.h"

namespace rondo {

namespace {

using Kind = FittedFeature::Kind;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

double date_part(const TableDate& date, const std::string& part) {
  if (part == "days") {
    return date.seconds / 86400.0;
  }
  if (part == "seconds") {
    return date.seconds;
  }
  const std::pair<const char*, int64_t> parts[] = {{"year", date.year},
                                                   {"month", date.month},
                                                   {"day", date.day},
                                                   {"weekday", date.weekday},
                                                   {"hour", date.hour}};
  const auto* found = std::find_if(
      std::begin(parts), std::end(parts), [&](const auto& entry) { return part == entry.first; });
  return static_cast<double>(found->second);
}

/// The number that each word stands for; NaN for those that are none of the kind.
std::vector<double> numbers_of_words(const TableColumn& column,
                                     Kind kind,
                                     const std::string& part,
                                     const std::string& date_order) {
  std::vector<double> numbers;
  for (const std::string& word : column.words) {
    if (kind == Kind::Boolean) {
      const auto value = parse_boolean(word);
      numbers.push_back(value ? (*value ? 1.0 : 0.0) : kMissing);
    } else {
      const auto date = parse_date(word, date_order);
      numbers.push_back(date ? date_part(*date, part) : kMissing);
    }
  }
  return numbers;
}

const char* expected_of(Kind kind) {
  if (kind == Kind::Number) {
    return kNumberExpected;
  }
  return kind == Kind::Boolean ? "true or false" : "a date as date_order has it";
}

}  // namespace

bool is_float32(double x) {
  return std::isfinite(static_cast<float>(x));
}

ColumnNumbers::ColumnNumbers(const Table& table,
                             size_t column,
                             Kind kind,
                             const std::string& part,
                             const std::string& date_order,
                             const std::vector<size_t>& rows)
    : column_(table.columns[column]) {
  if (kind == Kind::Number || !column_.is_text) {
    of_words_.assign(column_.words.size(), kMissing);
  } else {
    of_words_ = numbers_of_words(column_, kind, part, date_order);
  }
  if (!column_.is_text && kind == Kind::Number) {
    return;  // all cells were numbers, or missing
  }
  const bool is_foreign = column_.is_text == (kind == Kind::Number);
  CellFaults faults;
  for (const size_t row : rows) {
    const bool is_wrong = is_foreign || std::isnan((*this)[row]);
    if (is_wrong && !column_.is_missing(row)) {
      faults.add(row);
    }
  }
  if (!faults.empty()) {
    faults.fail(table, column, expected_of(kind), "");
  }
}

double ColumnNumbers::operator[](size_t row) const {
  if (!column_.is_text) {
    return column_.numbers[row];
  }
  const int32_t code = column_.codes[row];
  return code < 0 ? kMissing : of_words_[static_cast<size_t>(code)];
}

std::vector<double> row_keys(const Table& table,
                             size_t column,
                             bool is_time,
                             const std::string& date_order,
                             const std::vector<size_t>& rows) {
  const TableColumn& cells = table.columns[column];
  std::vector<double> keys;
  CellFaults missing;
  const bool is_date = is_time && cells.is_text;
  std::optional<ColumnNumbers> dates;
  if (is_date) {
    const std::string order = likeliest_date_order(table, column, date_order);
    dates.emplace(table, column, Kind::Date, "seconds", order, rows);
  }
  for (const size_t row : rows) {
    if (cells.is_missing(row)) {
      missing.add(row);
    }
    keys.push_back(is_date         ? (*dates)[row]
                   : cells.is_text ? static_cast<double>(cells.codes[row])
                                   : cells.numbers[row]);
  }
  if (!missing.empty()) {
    missing.fail(table, column, is_time ? "a time" : "a group", "");
  }
  return keys;
}

}  // namespace rondo
