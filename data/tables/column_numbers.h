#pragma once

#include <string>
#include <vector>

#include "data/tables/table_fit.h"

namespace rondo {

constexpr const char* kNumberExpected = "a finite number of float32";

/// Whether a float32 can hold a number.
bool is_float32(double x);

/// The numbers of a column of numbers, truth values or dates, row by row.
class ColumnNumbers {
 public:
  /// \param part  of a date; else not looked at
  /// \throws DataError  for cells that are none of the kind
  ColumnNumbers(const Table& table,
                size_t column,
                FittedFeature::Kind kind,
                const std::string& part,
                const std::string& date_order,
                const std::vector<size_t>& rows);

  /// NaN where the cell is missing.
  double operator[](size_t row) const;

 private:
  const TableColumn& column_;
  std::vector<double> of_words_;
};

/// A column's cells as seconds since 1970 or as numbers, for sorting and grouping rows.
/// \param date_order  of text, where `is_time`; may be "auto"
/// \throws DataError  for missing cells, and where `is_time` for text that is no date
std::vector<double> row_keys(const Table& table,
                             size_t column,
                             bool is_time,
                             const std::string& date_order,
                             const std::vector<size_t>& rows);

}  // namespace rondo
