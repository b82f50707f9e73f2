#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "data/splits/table_split.h"

namespace rondo {

/// What data sets call how their rows were split, in what they learnt: of each its own.
constexpr const char* kSplits = "splits";

/// How they call what is of the files of one data set alone: how a table is written, a table of
/// targets likewise, and which shares of a series trained.
constexpr const char* kTableFormat = "format";
constexpr const char* kTargetFormat = "target_format";
constexpr const char* kWindowShares = "windows";

/// A split with what it was drawn from. With other rows, some that trained would validate.
struct DrawnSplit {
  TableSplit split;    ///< its part does not count
  int64_t rows = 0;    ///< that were split
  std::string digest;  ///< of their numbers in the table, and of what the split goes by
};

/// \param rows  that are split, by their numbers in the table
/// \param keys  as for `split_rows`
DrawnSplit drawn_split(const TableSplit& split,
                       const std::vector<size_t>& rows,
                       const std::vector<double>& keys);

/// \param file    for messages
/// \param learnt  how the files of training were split; none where that is not known
/// \throws ConfigError  naming both, when rows are split in another way than any of these
/// \throws DataError    saying what differs, when it was drawn from other rows
void require_learnt_split(const std::string& file,
                          const DrawnSplit& drawn,
                          const std::vector<DrawnSplit>& learnt);

/// As a checkpoint holds it, and back. \throws CheckpointError  for another state
StateDict to_state(const DrawnSplit& drawn);
DrawnSplit drawn_split_from(const StateDict& state);

}  // namespace rondo
