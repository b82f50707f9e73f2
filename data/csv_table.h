#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rondo {

/// A table of numbers in a text file, gzipped or not, whose first line names the columns. Fields
/// may stand in double quotes. A sample has "features", float32 [columns], and "label", int64 [] or
/// float32 [].
class CsvTable final : public Dataset {
 public:
  struct Options {
    std::string file = {};                          ///< name or path; must be given
    std::string label_column = "label";             ///< the column to predict
    std::string label_type = "class";               ///< "class": int64 >= 0; "value": float32
    std::optional<int64_t> classes = {};            ///< classes are below it, where it is given
    std::vector<std::string> feature_columns = {};  ///< in this order; all others when empty
    std::string delimiter = ",";                    ///< one character
    int64_t first = 0;                              ///< number of the first row that is used
    std::optional<int64_t> count = {};              ///< rows from there; all when absent
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// \throws DataError  naming file, line and column of what is wrong
  explicit CsvTable(const Options& options);

  int64_t size() const override { return features_.size(0); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  const std::vector<std::string>& feature_names() const { return feature_names_; }

 private:
  at::Tensor features_;  // float32 [rows, columns]
  at::Tensor labels_;    // [rows]
  std::vector<std::string> feature_names_;
};

}  // namespace rondo
