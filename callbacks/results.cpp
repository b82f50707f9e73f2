#include "callbacks/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/csv.h"
#include "core/json.h"

namespace rondo {

namespace {

/// Every metric name of the rows, in order of appearance.
std::vector<std::string> names_of(const std::vector<ValidationRow>& rows) {
  std::vector<std::string> names;
  for (const ValidationRow& row : rows) {
    for (const Metrics::Item& item : row.metrics.items()) {
      if (std::find(names.begin(), names.end(), item.first) == names.end()) {
        names.push_back(item.first);
      }
    }
  }
  return names;
}

std::string checkpoint_text(const ValidationRow& row) {
  return row.checkpoint ? row.checkpoint->string() : "";
}

std::string json_of(const ValidationRow& row) {
  return fmt::format("{{\"checkpoint\": {}, \"step\": {}{}{}}}",
                     json_string(checkpoint_text(row)),
                     row.step,
                     row.metrics.empty() ? "" : ", ",
                     json_members(row.metrics));
}

}  // namespace

std::string ValidationTable::to_csv() const {
  const std::vector<std::string> names = names_of(rows);
  std::string text = "checkpoint,step";
  for (const std::string& name : names) {
    text += "," + csv_field(name);
  }
  text += "\n";
  for (const ValidationRow& row : rows) {
    text += csv_field(checkpoint_text(row)) + "," + std::to_string(row.step);
    for (const std::string& name : names) {
      const auto number = row.metrics.number(name);
      text += "," + (number ? fmt::format("{}", *number) : std::string());
    }
    text += "\n";
  }
  return text;
}

std::string ValidationTable::to_json() const {
  std::string text;
  for (const ValidationRow& row : rows) {
    text += (text.empty() ? "  " : ",\n  ") + json_of(row);
  }
  return "[\n" + text + "\n]\n";
}

std::string ValidationTable::to_json_line() const {
  std::string text;
  for (const ValidationRow& row : rows) {
    text += (text.empty() ? "" : ", ") + json_of(row);
  }
  return "{\"rows\": [" + text + "]}";
}

std::ostream& operator<<(std::ostream& out, const ValidationTable& table) {
  const std::vector<std::string> names = names_of(table.rows);
  std::vector<std::vector<std::string>> cells;
  cells.push_back({"checkpoint", "step"});
  cells[0].insert(cells[0].end(), names.begin(), names.end());
  for (const ValidationRow& row : table.rows) {
    std::vector<std::string> line{
        row.checkpoint ? row.checkpoint->filename().string() : "(as it is)",
        std::to_string(row.step)};
    for (const std::string& name : names) {
      const auto number = row.metrics.number(name);
      line.push_back(number ? fmt::format("{:.4f}", *number) : "-");
    }
    cells.push_back(std::move(line));
  }
  std::vector<size_t> widths(cells[0].size(), 0);
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      out << (i == 0 ? fmt::format("{:<{}}", line[i], widths[i])
                     : fmt::format("  {:>{}}", line[i], widths[i]));
    }
    out << "\n";
  }
  return out;
}

}  // namespace rondo
