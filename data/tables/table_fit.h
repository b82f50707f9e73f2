#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dataset_facts.h"
#include "core/state_dict.h"
#include "data/splits/drawn_split.h"
#include "data/tables/csv_table.h"
#include "data/tables/table.h"
#include "data/tables/table_roles.h"

namespace rondo {

/// What is done with a number: perhaps sign(x) · log(1 + |x|), then (x - shift) / factor.
struct NumberScale {
  bool is_log = false;
  double shift = 0.0;
  double factor = 1.0;

  double of(double x) const;
};

/// A column of numbers, truth values, dates or words, as training saw it.
struct FittedFeature {
  enum class Kind { Number, Boolean, Date, Category };

  std::string name;
  Kind kind = Kind::Number;
  bool has_indicator = false;            ///< a feature more says where it is missing
  std::vector<std::string> parts = {};   ///< of a date
  std::vector<double> fills = {};        ///< stand for a missing number or date, one a part
  std::vector<NumberScale> scales = {};  ///< of a number or date, one a part
  std::vector<std::string> words = {};   ///< of a category; the first one is code 1
  std::string date_order = {};           ///< of a date; "" in older checkpoints
};

/// What is predicted, as training saw it.
struct FittedLabel {
  std::vector<std::string> names = {};  ///< of the columns; none: nothing is predicted
  bool is_class = false;
  std::vector<std::string> words = {};   ///< the classes by number; none: numbers as they stand
  std::vector<int64_t> rows = {};        ///< for training of each class
  std::vector<NumberScale> scales = {};  ///< of each value
};

/// What a table's columns need, from the rows for training.
struct TableFit {
  bool fills_missing = false;  ///< else a missing cell is an error
  std::vector<FittedFeature> features;
  std::vector<std::string> unused;  ///< columns that training did not look at
  FittedLabel label;
  std::vector<DrawnSplit> splits;            ///< of the files; older checkpoints lack it
  std::optional<TableFormat> format;         ///< of the files; older checkpoints lack it
  std::optional<TableFormat> target_format;  ///< of the file of the label, where there is one

  StateDict state() const;

  /// \throws CheckpointError  for a state that `state` did not give
  static TableFit from(const StateDict& state);

  DatasetFacts facts() const;

  /// What was done with each number of "features".
  std::vector<DatasetFacts::Target> feature_scales() const;
};

/// A table with what is predicted, which may be in a table of its own.
struct LabelledTable {
  const Table& table;
  const Table& label_table;
  std::vector<size_t> labels;  ///< columns of `label_table`

  const TableColumn& label(size_t i) const { return label_table.columns[labels[i]]; }
};

/// \param rows  for training
/// \throws DataError  naming the place, for cells that do not fit and for a label that can be a
///                    class or a value
TableFit fit_table(const LabelledTable& data,
                   const TableRoles& roles,
                   const std::vector<size_t>& rows,
                   const CsvTable::Options& options);

/// What samples hold: undefined where there is nothing.
struct EncodedTable {
  at::Tensor features;    // float32 [rows, numbers]
  at::Tensor categories;  // int64 [rows, columns]
  at::Tensor labels;      // [rows] or [rows, targets]
};

/// \param features  the column of each fitted feature
/// \throws DataError  naming the places, for cells that do not fit
EncodedTable encode_table(const LabelledTable& data,
                          const std::vector<size_t>& features,
                          const TableFit& fit,
                          const std::vector<size_t>& rows,
                          const CsvTable::Options& options);

}  // namespace rondo
