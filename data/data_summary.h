#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/data_loader.h"
#include "data/sample_visit.h"

namespace rondo {

/// Least, greatest, mean and deviation of numbers that come one after the other.
/// Source: Welford 1962.
class NumberSummary {
 public:
  void add(double number);

  int64_t count() const { return count_; }  ///< of finite numbers

  int64_t not_finite() const { return not_finite_; }

  double least() const { return least_; }

  double most() const { return most_; }

  double mean() const { return mean_; }

  /// Of the numbers themselves, not an estimate for more.
  double deviation() const;

 private:
  int64_t count_ = 0;
  int64_t not_finite_ = 0;
  double least_ = 0.0;
  double most_ = 0.0;
  double mean_ = 0.0;
  double squares_ = 0.0;  // sum of squared distances from the mean
};

/// One tensor of the samples.
struct TensorStatistics {
  std::string name = {};
  std::string dtype = {};
  std::vector<int64_t> shape = {};  ///< in the first sample
  bool varies = false;              ///< another sample has another shape
  NumberSummary numbers = {};
};

/// One number of a tensor that is a row of numbers.
struct ColumnStatistics {
  std::string name = {};
  NumberSummary numbers = {};
};

/// What a loader's data holds.
struct DataSummary {
  std::optional<int64_t> samples = {};         ///< of a pass
  int64_t visited = 0;                         ///< samples that the numbers below are of
  int64_t unreadable = 0;                      ///< of them
  std::vector<VisitedSample> first = {};       ///< the first ones that can be read
  std::vector<TensorStatistics> tensors = {};  ///< in the order of the first sample
  std::vector<ColumnStatistics> columns = {};  ///< of "features", where it is a row of numbers
  std::vector<std::pair<std::string, int64_t>> classes = {};  ///< samples of each class visited
};

/// \param most   samples to visit, >= 1
/// \param shown  samples to keep in `first`
DataSummary summarise(const DataLoader& loader, int64_t most, int64_t shown);

/// The columns of "features" by name, `features[3]` where the data has no names.
std::string feature_name(const DatasetFacts& facts, int64_t column);

/// Class `number` as the data calls it.
std::string class_name(const DatasetFacts& facts, int64_t number);

/// The numbers of a tensor, row after row.
std::vector<double> numbers_of(const at::Tensor& tensor);

/// `float32`, as NumPy and PyTorch call it.
std::string dtype_name(at::ScalarType type);

}  // namespace rondo
