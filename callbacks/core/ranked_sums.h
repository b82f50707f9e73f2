#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/rank_range.h"
#include "distributed/communicator.h"

namespace rondo {

/// Sums over a pass whose batches virtual ranks evaluate in turns: each has its own, in its order,
/// and all are added as the tree of `Communicator`. So their bits do not depend on how many
/// processes share the pass.
class RankedSums {
 public:
  /// Before the first batch. \param sums  float64, zero; they stay the caller's
  void begin(std::vector<at::Tensor> sums, const RankRange& range);

  /// Before a batch: the tensors hold the sums of this virtual rank, which is one of the process.
  void use(int64_t rank);

  /// After the last batch of the process: the tensors hold the sums of all. Collective.
  void finish(Communicator& communicator);

 private:
  void keep();

  std::vector<at::Tensor> sums_;
  RankRange range_;
  std::vector<std::vector<at::Tensor>> kept_;  // of each virtual rank; empty where there is one
  size_t in_use_ = 0;
};

}  // namespace rondo
