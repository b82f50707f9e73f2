// `rondo query` and `rondo alerts`

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <iostream>
#include <utility>

#include "cli/record_commands.h"
#include "cli/recorded_runs.h"
#include "cli/text_table.h"
#include "core/error.h"
#include "core/json_text.h"
#include "record/run_database.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

std::string text_of(const QueryCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) {
    return std::to_string(*number);
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return fmt::format("{:.6g}", *number);
  }
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

std::string json_of(const QueryCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) {
    return std::to_string(*number);
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return json_number(*number);
  }
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "null" : json_string(*text);
}

/// One object a row, in the order of the names.
std::string json_lines(const QueryAnswer& answer) {
  std::string lines;
  for (const std::vector<QueryCell>& row : answer.rows) {
    std::string members;
    for (size_t i = 0; i < row.size(); ++i) {
      members += fmt::format(
          "{}{}:{}", members.empty() ? "" : ",", json_string(answer.names[i]), json_of(row[i]));
    }
    lines += "{" + members + "}\n";
  }
  return lines;
}

std::string table_of(const QueryAnswer& answer) {
  std::vector<std::vector<std::string>> rows = {answer.names};
  for (const std::vector<QueryCell>& row : answer.rows) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const QueryCell& cell : row) {
      cells.push_back(text_of(cell));
    }
  }
  return text_table_for_stdout(std::move(rows));
}

std::string time_text(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

/// Whether a statement may read a table of which a summary has not all, or none.
bool names_values(std::string sql) {
  std::transform(sql.begin(), sql.end(), sql.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const auto names = [&](const char* table) { return sql.find(table) != std::string::npos; };
  return names("metrics") || names("checkpoints") || names("validations") || names("media");
}

}  // namespace

int query(const CommandLine& line) {
  std::vector<std::string> paths = line.files;
  std::string sql;
  std::error_code error;
  if (!paths.empty() && !fs::exists(paths.back(), error)) {
    sql = paths.back();
    paths.pop_back();
  }
  if (sql.empty() && line.output.empty()) {
    throw UsageError("query: expected a select statement after the runs, or --save FILE.db");
  }
  if (paths.empty()) {
    if (!sql.empty() && sql.find(' ') == std::string::npos) {
      throw UsageError(fmt::format("query: there is no run \"{}\"", sql));
    }
    paths = {"."};
  }
  const bool needs_all = !line.output.empty() || names_values(sql);
  const std::vector<RunRecord> runs = needs_all ? runs_at(paths) : summaries_at(paths);
  if (!line.output.empty()) {
    save_runs(runs, line.output);
    std::cerr << line.output << ": written\n";
  }
  if (!sql.empty()) {
    const QueryAnswer answer = query_runs(runs, sql);
    std::cout << (line.json ? json_lines(answer) : table_of(answer));
  }
  return 0;
}

int alerts(const CommandLine& line) {
  std::vector<std::vector<std::string>> rows = {{"run", "update", "time", "level", "alert"}};
  for (const RunRecord& run :
       summaries_at(line.files.empty() ? std::vector<std::string>{"."} : line.files)) {
    for (const RecordAlert& alert : run.alerts) {
      rows.push_back(
          {run.name, std::to_string(alert.step), time_text(alert.time), alert.level, alert.text});
      if (line.json) {
        std::cout << fmt::format(
            "{{\"run\":{},\"step\":{},\"time\":{:.3f},\"level\":{},\"text\":{}}}\n",
            json_string(run.name),
            alert.step,
            alert.time,
            json_string(alert.level),
            json_string(alert.text));
      }
    }
  }
  const bool has_any = rows.size() > 1;
  if (has_any && !line.json) {
    std::cout << text_table_for_stdout(std::move(rows));
  }
  return has_any ? 1 : 0;
}

}  // namespace rondo
