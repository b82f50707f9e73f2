#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/named_tensor.h"

namespace rondo {

/// The end of a virtual rank in the group of a process.
struct RankEnd {
  size_t earlier_sums = 0;  ///< that its values are added to
  bool is_last = false;     ///< of the process
};

/// Adds the values of a process's virtual ranks, which come one after the other, as a balanced
/// binary tree: (0+1), (2+3), then these two, and so on. Keeps the sums of earlier ones in memory
/// that stays, made without the dispatcher: no recorded step sees it made.
class PartialSums {
 public:
  /// Called at the end of each virtual rank. `values` are undefined in the same places each time.
  /// Behind the last one they are the sums; behind another one they are of no use any more.
  /// \capture safe
  void add(const std::vector<at::Tensor>& values, const RankEnd& end);

  /// What is kept, for `captured_state`.
  void append_to(NamedTensors& all, const std::string& name) const;

 private:
  const std::vector<at::Tensor>& kept_like(const std::vector<at::Tensor>& values, size_t level);

  std::vector<std::vector<at::Tensor>> kept_;  // by how often it was added to
};

}  // namespace rondo
