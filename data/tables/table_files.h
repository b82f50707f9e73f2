#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/tables/csv_table.h"
#include "data/tables/table.h"
#include "data/tables/table_fit.h"
#include "data/tables/table_roles.h"

namespace rondo {

bool has_target_file(const CsvTable::Options& options);

/// The files of a table. A relative name is looked for in the current directory when nothing says
/// where data is.
std::vector<std::filesystem::path> files_of(const CsvTable::Options& options,
                                            const std::string& name);

TableFormat format_of(const CsvTable::Options& options);

/// As the options say; what they leave open as training had it, where that is known.
TableFormat format_of(const CsvTable::Options& options, const std::optional<TableFormat>& learnt);

/// By which the line of names is found.
/// \param fit  what training learnt; null where that is not known
std::vector<std::string> names_in_header(const CsvTable::Options& options, const TableFit* fit);

/// The files of a table as they were read.
struct ReadFiles {
  std::string file;  ///< the first one
  TableFormat format;
  TableFormat target_format;
  TableRoles roles;
  Table table;
  std::optional<Table> targets;  ///< where the label is in a file of its own

  LabelledTable data() const;
};

/// \param given  what training learnt; null where that is not known
/// \throws DataError    naming the file and the place
/// \throws ConfigError  for keys that contradict what was learnt
ReadFiles read_files(const std::vector<std::filesystem::path>& paths,
                     const CsvTable::Options& options,
                     const TableFit* given);

/// Adds to what was learnt how the files are written, where it is not known.
void add_formats(const ReadFiles& read, TableFit& fit);

}  // namespace rondo
