#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/tables/csv_table.h"
#include "data/tables/table.h"

namespace rondo {

struct TableFit;

/// The columns of a table by what they are for, as numbers.
struct TableRoles {
  std::vector<size_t> features;
  std::vector<size_t> labels;  ///< none where they are in a file of their own
  std::optional<size_t> weight;
  std::optional<size_t> id;
  std::optional<size_t> split;      ///< what a split goes by
  std::vector<std::string> unused;  ///< names of columns without a role
};

/// The columns that are predicted, as the options call them.
std::vector<std::string> label_names(const CsvTable::Options& options);

/// Every column that the options name without a glob.
std::vector<std::string> named_columns(const CsvTable::Options& options);

/// The number in the table of a column that the options call `name`: by its name; where no line
/// names the columns also by its number, from 1, or from the end: "-1" is the last one.
std::optional<size_t> find_column(const TableDialect& dialect, const std::string& name);

/// The roles that the options give to the columns; those of `fit` are the features, where it is
/// given.
/// \param file  for messages
/// \throws DataError  for a column that is not there; naming those that the table lacks, and those
///                    that training did not know
TableRoles roles_of(const std::string& file,
                    const TableDialect& dialect,
                    const CsvTable::Options& options,
                    const TableFit* fit);

/// How each column is read.
std::vector<ColumnUse> uses_of(const TableRoles& roles,
                               const TableDialect& dialect,
                               const CsvTable::Options& options,
                               const TableFit* fit);

}  // namespace rondo
