#include "cli/text_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/terminal.h"

namespace rondo {

namespace {

/// At most so many characters, the last of which stands for those that are left out.
std::string cut(const std::string& line, size_t most) {
  return width_of(line) <= most ? line : first_characters(line, most - 1) + "\u2026";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e/@: naif") == std::string::npos;
}

}  // namespace

std::string text_table(std::vector<std::vector<std::string>> rows, std::optional<int> most) {
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) {
      cell = printable(cell);
    }
  }
  std::vector<size_t> widths;
  std::vector<bool> are_numbers;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < rows[row].size(); ++column) {
      if (column == widths.size()) {
        widths.push_back(0);
        are_numbers.push_back(true);
      }
      widths[column] = std::max(widths[column], width_of(rows[row][column]));
      if (row > 0 && !is_number(rows[row][column])) {
        are_numbers[column] = false;
      }
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string space(widths[column] - width_of(row[column]), ' ');
      line += (column == 0 ? "" : "  ") +
              (are_numbers[column] ? space + row[column] : row[column] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (most ? cut(line, static_cast<size_t>(std::max(*most, 1))) : line) + "\n";
  }
  return text;
}

std::string text_table_for_stdout(std::vector<std::vector<std::string>> rows) {
  return text_table(std::move(rows), terminal_columns(STDOUT_FILENO));
}

}  // namespace rondo
