#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <vector>

namespace rondo::detail {

/// These numbers as a tensor, [numbers], made by operators: a recorded step has them as its own,
/// where a tensor from outside of it would be refused.  \capture safe
inline at::Tensor list_tensor(const std::vector<double>& numbers,
                              const at::TensorOptions& options) {
  std::vector<at::Tensor> runs;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[begin]) {
      ++end;
    }
    runs.push_back(at::full({static_cast<int64_t>(end - begin)}, numbers[begin], options));
    begin = end;
  }
  return runs.size() == 1 ? runs.front() : at::cat(runs);
}

}  // namespace rondo::detail
