#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "record/run_record.h"

namespace rondo {

/// A cell of a query's answer: nothing, a number or a text.
using QueryCell = std::variant<std::monostate, int64_t, double, std::string>;

/// The answer of a query: rows of cells below names.
struct QueryAnswer {
  std::vector<std::string> names;
  std::vector<std::vector<QueryCell>> rows;
};

/// Answers a select statement of SQL over tables that are filled from the records of runs: `runs`,
/// `config`, `metrics`, `checkpoints`, `validations`, `alerts` and `media`
/// (`docs/record_format.md`).
/// \throws UsageError  for another statement, or where rondo was built without SQLite
QueryAnswer query_runs(const std::vector<RunRecord>& runs, const std::string& sql);

/// Writes the tables into an SQLite file, in the place of one that is there.
/// \throws UsageError  where rondo was built without SQLite
/// \throws DataError   when the file cannot be written
void save_runs(const std::vector<RunRecord>& runs, const std::filesystem::path& file);

}  // namespace rondo
