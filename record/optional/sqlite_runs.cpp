#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "core/error.h"
#include "record/run_database.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

constexpr const char* kTables =
    "create table runs(run text, directory text, status text, reason text, step integer, updates "
    "integer, sessions integer, begin_time real, end_time real, version text);"
    "create table config(run text, key text, value text);"
    "create table metrics(run text, name text, step integer, time real, value real);"
    "create table checkpoints(run text, step integer, time real, path text);"
    "create table validations(run text, label text, step integer, time real, name text, value "
    "real);"
    "create table alerts(run text, step integer, time real, level text, text text);"
    "create table media(run text, name text, kind text, step integer, time real, file text);";

Database opened(const std::string& file) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open(file.c_str(), &raw);
  Database database(raw);
  if (code != SQLITE_OK) {
    throw DataError(fmt::format("{}: cannot be opened: {}", file, sqlite3_errstr(code)));
  }
  return database;
}

void execute(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw DataError(fmt::format("SQLite: {}", sqlite3_errmsg(database)));
  }
}

/// Inserts rows into one table.
class Inserter {
 public:
  Inserter(sqlite3* database, const char* sql) : database_(database) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database, sql, -1, &raw, nullptr) != SQLITE_OK) {
      throw DataError(fmt::format("SQLite: {}", sqlite3_errmsg(database)));
    }
    statement_.reset(raw);
  }

  template <class... Values>
  void add(const Values&... values) {
    int place = 0;
    (bind(++place, values), ...);
    if (sqlite3_step(statement_.get()) != SQLITE_DONE) {
      throw DataError(fmt::format("SQLite: {}", sqlite3_errmsg(database_)));
    }
    sqlite3_reset(statement_.get());
  }

 private:
  // The text lives until the row is in the table.
  void bind(int place, const std::string& text) {
    sqlite3_bind_text(
        statement_.get(), place, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }

  void bind(int place, double number) { sqlite3_bind_double(statement_.get(), place, number); }

  void bind(int place, int64_t number) { sqlite3_bind_int64(statement_.get(), place, number); }

  void bind(int place, const std::optional<int64_t>& number) {
    number ? bind(place, *number) : static_cast<void>(sqlite3_bind_null(statement_.get(), place));
  }

  sqlite3* database_;
  Statement statement_;
};

/// Statements that add what a run recorded.
struct Inserters {
  explicit Inserters(sqlite3* database)
      : runs(database, "insert into runs values(?,?,?,?,?,?,?,?,?,?)"),
        config(database, "insert into config values(?,?,?)"),
        metrics(database, "insert into metrics values(?,?,?,?,?)"),
        checkpoints(database, "insert into checkpoints values(?,?,?,?)"),
        validations(database, "insert into validations values(?,?,?,?,?,?)"),
        alerts(database, "insert into alerts values(?,?,?,?,?)"),
        media(database, "insert into media values(?,?,?,?,?,?)") {}

  void add(const RunRecord& run);
  void add_validations(const RunRecord& run);

  Inserter runs;
  Inserter config;
  Inserter metrics;
  Inserter checkpoints;
  Inserter validations;
  Inserter alerts;
  Inserter media;
};

void Inserters::add(const RunRecord& run) {
  runs.add(run.name,
           run.directory.string(),
           std::string(to_string(run.status)),
           run.reason,
           run.step,
           run.updates,
           int64_t{run.sessions},
           run.begin,
           run.end,
           run.version);
  for (const auto& [key, value] : run.config) {
    config.add(run.name, key, value);
  }
  for (const auto& [name, points] : run.metrics) {
    for (const RecordPoint& point : points) {
      metrics.add(run.name, name, point.step, point.time, point.value);
    }
  }
  for (const RecordSave& save : run.saves) {
    checkpoints.add(run.name, save.step, save.time, save.path);
  }
  for (const RecordAlert& alert : run.alerts) {
    alerts.add(run.name, alert.step, alert.time, alert.level, alert.text);
  }
  for (const RecordMedia& one : run.media) {
    media.add(run.name, one.name, one.kind, one.step, one.time, one.file);
  }
  add_validations(run);
}

void Inserters::add_validations(const RunRecord& run) {
  for (const RecordValidation& validation : run.validations) {
    const std::string scope = validation.label + "/";
    for (auto metric = run.metrics.lower_bound(scope);
         metric != run.metrics.end() && metric->first.rfind(scope, 0) == 0;
         ++metric) {
      for (const RecordPoint& point : metric->second) {
        if (point.step == validation.step) {
          validations.add(run.name,
                          validation.label,
                          point.step,
                          point.time,
                          metric->first.substr(scope.size()),
                          point.value);
        }
      }
    }
  }
}

Database filled(const std::vector<RunRecord>& runs, const std::string& file) {
  Database database = opened(file);
  execute(database.get(), "begin");
  execute(database.get(), kTables);
  {
    Inserters inserters(database.get());
    for (const RunRecord& run : runs) {
      inserters.add(run);
    }
  }
  execute(database.get(), "commit");
  return database;
}

Statement prepared(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()) + 1, &raw, &rest);
  Statement statement(raw);
  if (code != SQLITE_OK) {
    throw UsageError(fmt::format("query: {}", sqlite3_errmsg(database)));
  }
  const bool is_select =
      raw != nullptr && sqlite3_stmt_readonly(raw) != 0 && sqlite3_column_count(raw) > 0;
  if (!is_select || std::string(rest).find_first_not_of(" \t\r\n;") != std::string::npos) {
    throw UsageError("query: expected one select statement");
  }
  return statement;
}

QueryCell cell_of(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(row, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    default: {
      const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(row, column));
      return bytes == nullptr ? std::string() : std::string(bytes, size);
    }
  }
}

}  // namespace

QueryAnswer query_runs(const std::vector<RunRecord>& runs, const std::string& sql) {
  const Database database = filled(runs, ":memory:");
  const Statement statement = prepared(database.get(), sql);
  const int columns = sqlite3_column_count(statement.get());
  QueryAnswer answer;
  for (int column = 0; column < columns; ++column) {
    answer.names.emplace_back(sqlite3_column_name(statement.get(), column));
  }
  int code = sqlite3_step(statement.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(statement.get())) {
    std::vector<QueryCell>& row = answer.rows.emplace_back();
    for (int column = 0; column < columns; ++column) {
      row.push_back(cell_of(statement.get(), column));
    }
  }
  if (code != SQLITE_DONE) {
    throw UsageError(fmt::format("query: {}", sqlite3_errmsg(database.get())));
  }
  return answer;
}

void save_runs(const std::vector<RunRecord>& runs, const fs::path& file) {
  const fs::path unfinished = file.string() + ".tmp";
  std::error_code error;
  fs::remove(unfinished, error);
  filled(runs, unfinished.string());
  fs::rename(unfinished, file, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be written: {}", file.string(), error.message()));
  }
}

}  // namespace rondo
