#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/file_system.h"
#include "core/tensor_map.h"
#include "data/data_loader.h"

namespace rondo {

/// Writes predictions as CSV, a line a sample in the order of the data, which begins with the
/// sample's name:
/// - of "logits" [samples, classes] the class and the probability of each class
/// - of "prediction", [samples] or [samples, values], the values in the units of the data
/// No file is written for other outputs, and for data that is not reached by number. Holds the
/// lines of one batch.
class PredictionTable {
 public:
  /// \param loader  one in the order of its data
  /// \param file    gets its name when it is whole
  PredictionTable(DataLoader loader, std::filesystem::path file);
  PredictionTable(const PredictionTable&) = delete;
  PredictionTable& operator=(const PredictionTable&) = delete;
  ~PredictionTable();

  /// The outputs of the next batch, on the host. \throws IoError
  void add(const Outputs& outputs);

  /// After the last batch. \return why there is no file; "" when there is one \throws IoError
  std::string finish();

 private:
  std::string lines_of(const Outputs& outputs, int64_t rows);
  void append(const std::string& lines);

  DataLoader loader_;
  std::filesystem::path file_;
  std::filesystem::path partial_;  // the name until it is whole
  std::unique_ptr<WritableFile> out_;
  int64_t next_ = 0;  // number of the next batch's first sample
  std::string header_;
  std::string missing_;  // why there is no file
};

}  // namespace rondo
