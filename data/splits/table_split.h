#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// Which rows of a table train, validate and test: a pure function of these options and the rows.
struct TableSplit {
  /// "train", "val", "test" or "all": the rows that are used. Must be given where rows are split;
  /// else all.
  std::optional<std::string> part = {};
  double val = 0.0;           ///< share of the rows that validate, in [0, 1)
  double test = 0.0;          ///< share of the rows that test, in [0, 1)
  std::string by = "random";  ///< or "stratified" (by class), "group:<column>" (rows of a group
                              ///< stay together), "time:<column>" (the last rows), "fold:<k>/<n>"
  uint64_t seed = 0;          ///< of the choice
};

enum class TablePart : uint8_t { Train, Val, Test };

/// Whether rows do not all train.
bool splits_rows(const TableSplit& split);

/// The column that `by` names; "" for the ways that need none.
std::string column_of(const TableSplit& split);

/// \throws UsageError  for shares that leave nothing to train, and for an unknown way
void check_split(const std::string& component, const TableSplit& split);

/// The part of each row.
/// \param keys  of the rows: classes for "stratified", numbers of groups for "group", times for
///              "time"; else not looked at
std::vector<TablePart> split_rows(const TableSplit& split,
                                  size_t rows,
                                  const std::vector<double>& keys);

/// Whether `split.part` takes rows of a part.
bool takes(const TableSplit& split, TablePart part);

}  // namespace rondo
