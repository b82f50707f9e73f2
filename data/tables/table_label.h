#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "data/tables/table_fit.h"

namespace rondo {

/// How `how` ("standard" …) scales these values.
NumberScale fit_scale(const std::string& how, std::vector<double> values);

/// The words of a column that stand in these rows, in their order.
std::vector<std::string> words_of_rows(const TableColumn& column, const std::vector<size_t>& rows);

/// What is predicted, from the rows for training.
/// \throws DataError  naming the place, for cells that do not fit and for a label that can be a
///                    class or a value
FittedLabel fit_label(const LabelledTable& data,
                      const std::vector<size_t>& rows,
                      const CsvTable::Options& options);

/// int64 [rows] of classes, float32 [rows] or [rows, targets] of values.
/// \throws DataError  naming the places of cells that do not fit
at::Tensor encode_label(const LabelledTable& data,
                        const FittedLabel& label,
                        const std::vector<size_t>& rows,
                        const CsvTable::Options& options);

}  // namespace rondo
