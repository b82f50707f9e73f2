#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/tables/table.h"

namespace rondo {

/// What the samples of a table are called in predictions.
struct RowNames {
  at::Tensor rows;                       ///< int64 [samples]: their numbers in the table
  std::vector<std::string> ids = {};     ///< cells of an id column; none without one
  std::vector<std::string> files = {};   ///< where there are several
  std::vector<int64_t> first_rows = {};  ///< of each of these files

  /// The id; else the number of the row in its file, from 0: "17", "part2.csv:17".
  std::string of(int64_t sample) const;
};

/// \param rows       of the samples
/// \param id_column  that names them, where there is one
RowNames row_names(const Table& table,
                   const std::vector<size_t>& rows,
                   const std::optional<size_t>& id_column);

}  // namespace rondo
