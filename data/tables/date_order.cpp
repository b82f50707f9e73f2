#include "data/tables/date_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "data/tables/cells.h"

namespace rondo {

namespace {

constexpr std::array<const char*, 3> kDateOrders = {"ymd", "dmy", "mdy"};

size_t dates_in(const TableColumn& column, const std::string& order) {
  return static_cast<size_t>(
      std::count_if(column.words.begin(), column.words.end(), [&](const std::string& word) {
        return parse_date(word, order).has_value();
      }));
}

[[noreturn]] void fail_order(const Table& table, size_t column) {
  size_t row = 0;
  while (table.columns[column].is_missing(row)) {
    ++row;
  }
  const Table::Found first = table.find(row, column);
  throw DataError(fmt::format(
      "{}: column \"{}\": the dates, such as \"{}\", can begin with the day or with the "
      "month; set date_order = \"dmy\" or \"mdy\", or text_columns = [\"{}\"] to read "
      "them as words",
      first.place,
      table.columns[column].name,
      first.cell,
      table.columns[column].name));
}

}  // namespace

std::optional<std::string> date_order_of(const Table& table,
                                         size_t column,
                                         const std::string& wanted) {
  const TableColumn& cells = table.columns[column];
  const auto fits = [&](const std::string& order) {
    return std::all_of(cells.words.begin(), cells.words.end(), [&](const std::string& word) {
      return parse_date(word, order).has_value();
    });
  };
  if (cells.words.empty()) {
    return std::nullopt;
  }
  if (wanted != "auto") {
    return fits(wanted) ? std::optional<std::string>(wanted) : std::nullopt;
  }
  const auto* const first = std::find_if(kDateOrders.begin(), kDateOrders.end(), fits);
  if (first == kDateOrders.end()) {
    return std::nullopt;
  }
  if (*first == std::string("dmy") && fits("mdy")) {
    fail_order(table, column);
  }
  return *first;
}

std::string likeliest_date_order(const Table& table, size_t column, const std::string& wanted) {
  if (const auto order = date_order_of(table, column, wanted)) {
    return *order;
  }
  return wanted != "auto"
             ? wanted
             : *std::max_element(
                   kDateOrders.begin(), kDateOrders.end(), [&](const char* a, const char* b) {
                     return dates_in(table.columns[column], a) < dates_in(table.columns[column], b);
                   });
}

bool is_any_date(std::string_view word) {
  return std::any_of(kDateOrders.begin(), kDateOrders.end(), [&](const char* order) {
    return parse_date(word, order).has_value();
  });
}

}  // namespace rondo
