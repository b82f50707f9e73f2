#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace rondo::detail {

/// How samples of several lengths become one batch.
struct Padding {
  std::vector<int64_t> lengths;      ///< that batches may have, ascending; none: nothing is padded
  std::vector<std::string> tensors;  ///< those whose first dimension is brought to it
  std::vector<std::string> labels;   ///< of these, those that are padded with -100 instead of 0
};

/// Stacks samples after each tensor to be padded has the least length that is long enough for all.
/// \param numbers  how messages call the samples
/// \throws DataError  when a tensor is missing, has no dimension or is longer than all lengths
Batch stack_padded(std::vector<Sample> samples,
                   const std::vector<int64_t>& numbers,
                   const Padding& padding);

}  // namespace rondo::detail
