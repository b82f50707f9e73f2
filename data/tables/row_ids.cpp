#include "data/tables/row_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "data/tables/date_order.h"

namespace rondo {

namespace {

bool has_ending(const std::string& name, const std::string& ending) {
  return name.size() > ending.size() &&
         name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

/// "id", "user_id", "PassengerId", "Sample ID", but not "paid".
bool is_name_of_ids(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const bool is_capital = has_ending(name, "Id") || has_ending(name, "ID");
  const bool is_word =
      is_capital && std::isupper(static_cast<unsigned char>(name[name.size() - 3])) == 0;
  return lower == "id" || lower == "index" || has_ending(lower, "_id") || is_word;
}

/// What whole numbers of which none comes twice say; "" for others.
std::string suspicion_of_numbers(const TableColumn& column) {
  std::vector<double> numbers = column.numbers;
  const bool are_whole = std::all_of(
      numbers.begin(), numbers.end(), [](double number) { return number == std::floor(number); });
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  const double range = are_whole ? *most - *least + 1.0 : 0.0;
  const auto rows = static_cast<double>(numbers.size());
  const bool is_named = is_name_of_ids(column.name);
  if (range < rows || (range > rows && !is_named)) {
    return "";  // and so no column is sorted in vain
  }
  const bool begins_with_rows = *least == 0.0 || *least == 1.0;
  const bool is_in_order = std::is_sorted(numbers.begin(), numbers.end());
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
    return "";
  }
  if (range == rows && (begins_with_rows || !is_in_order)) {
    return "counts the rows";  // 1950, 1951, ... in their order are years
  }
  return is_named ? "has another whole number in each row" : "";
}

std::string suspicion_of_words(const TableColumn& column, size_t rows) {
  const bool are_names = 2 * column.words.size() > rows && !is_any_date(column.words.front());
  return are_names ? fmt::format("has {} different words in {} rows", column.words.size(), rows)
                   : "";
}

}  // namespace

std::vector<std::string> warn_of_ids(const Table& table, const std::vector<size_t>& features) {
  constexpr size_t kFewest = 20;  // rows that say something
  std::vector<std::string> warnings;
  const auto rows = static_cast<size_t>(table.rows());
  for (const size_t c : features) {
    const TableColumn& column = table.columns[c];
    const std::string suspicion = rows < kFewest   ? ""
                                  : column.is_text ? suspicion_of_words(column, rows)
                                                   : suspicion_of_numbers(column);
    if (!suspicion.empty()) {
      warnings.push_back(fmt::format(
          "column \"{0}\" {1}: if it only names the rows, set ignore_columns = [\"{0}\"] or "
          "id_column = \"{0}\"",
          column.name,
          suspicion));
    }
  }
  return warnings;
}

}  // namespace rondo
