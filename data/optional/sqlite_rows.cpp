#include "data/tables/sqlite_rows.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "core/error.h"

namespace rondo {

namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path.string(), what));
}

Database opened(const std::filesystem::path& path) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) {
    fail(path, fmt::format("it cannot be opened as an SQLite database: {}", sqlite3_errstr(code)));
  }
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return database;
}

Statement prepared(const std::filesystem::path& path,
                   const Database& database,
                   const std::string& query) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(
      database.get(), query.c_str(), static_cast<int>(query.size()) + 1, &raw, &rest);
  Statement statement(raw);
  if (code != SQLITE_OK || raw == nullptr) {
    fail(path, fmt::format("query: {}", sqlite3_errmsg(database.get())));
  }
  if (sqlite3_stmt_readonly(raw) == 0 || sqlite3_column_count(raw) == 0) {
    fail(path, "query: a select statement is needed");
  }
  if (std::string(rest).find_first_not_of(" \t\r\n;") != std::string::npos) {
    fail(path, "query: one statement is needed, there are several");
  }
  return statement;
}

std::string cell_of(const std::filesystem::path& path,
                    sqlite3_stmt* row,
                    int column,
                    int64_t line) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      return "";
    case SQLITE_INTEGER:
      return fmt::format("{}", sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
      return fmt::format("{}", sqlite3_column_double(row, column));
    case SQLITE_TEXT: {
      const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
      return quoted_cell({text, text + static_cast<size_t>(sqlite3_column_bytes(row, column))});
    }
    default:
      fail(path,
           fmt::format("row {}: \"{}\" holds bytes, where a number or a text is needed",
                       line,
                       sqlite3_column_name(row, column)));
  }
}

}  // namespace

TextRows read_sqlite(const std::filesystem::path& path, const std::string& query, uint64_t most) {
  const Database database = opened(path);
  const Statement statement = prepared(path, database, query);
  const int columns = sqlite3_column_count(statement.get());
  TextRows found;
  for (int c = 0; c < columns; ++c) {
    found.names.emplace_back(sqlite3_column_name(statement.get(), c));
  }
  int64_t line = 1;
  int code = sqlite3_step(statement.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(statement.get()), ++line) {
    for (int c = 0; c < columns; ++c) {
      const std::string cell = cell_of(path, statement.get(), c, line);
      found.rows += c == 0 ? "" : ",";
      found.rows += cell.empty() && columns == 1 ? "\"\"" : cell;
    }
    found.rows += '\n';
    if (found.rows.size() > most) {
      fail(path, fmt::format("its rows take more than max_unpacked_bytes, {} bytes", most));
    }
  }
  if (code != SQLITE_DONE) {
    fail(path, fmt::format("row {}: {}", line, sqlite3_errmsg(database.get())));
  }
  return found;
}

}  // namespace rondo
