#include "core/csv.h"

#include <utility>

namespace rondo {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string cell;
  bool is_quoted = false;
  bool has_any = false;  // of the row
  const auto end_row = [&] {
    row.push_back(std::exchange(cell, ""));
    rows.push_back(std::exchange(row, {}));
    has_any = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_quote = c == '"';
    has_any = has_any || c != '\n';
    if (is_quoted && is_quote && text.substr(i + 1, 1) == "\"") {
      cell += text[++i];
    } else if (is_quote) {
      is_quoted = !is_quoted;
    } else if (!is_quoted && c == ',') {
      row.push_back(std::exchange(cell, ""));
    } else if (!is_quoted && c == '\n') {
      if (has_any) {
        end_row();
      }
    } else if (is_quoted || c != '\r') {
      cell += c;
    }
  }
  if (has_any) {
    end_row();
  }
  return rows;
}

}  // namespace rondo
