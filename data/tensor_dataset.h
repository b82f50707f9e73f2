#pragma once

#include "core/tensor_map.h"
#include "data/dataset.h"

namespace rondo {

/// Samples that are the rows of tensors in memory, each under its tensor's name.
class TensorDataset final : public Dataset {
 public:
  struct Options {
    TensorMap tensors = {};  ///< at least one; all with the same first dimension, the samples
  };

  /// Shares the memory of contiguous CPU tensors, copies others.
  /// \throws UsageError  when there is no tensor, or their first dimensions differ
  explicit TensorDataset(const Options& options);

  int64_t size() const override;
  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

 private:
  TensorMap rows_;
};

/// A description of a TensorDataset for a DataLoader: `from_tensors({{"x", x}, {"y", y}})`.
Factory<DataSource> from_tensors(TensorMap tensors);

}  // namespace rondo
