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

/// The first dimension of a tensor that is padded.
/// \throws DataError  when the sample has no such tensor, or it has no dimension
int64_t length_of(const Sample& sample, int64_t number, const std::string& name);

/// The index of the least length that is long enough.
/// \throws DataError  when none is
size_t place_of(int64_t length, int64_t number, const std::string& name, const Padding& padding);

/// Stacks samples after each tensor to be padded has the least length that is long enough for all.
/// \param numbers  how messages call the samples
/// \throws DataError  when a tensor is missing, has no dimension or is longer than all lengths
Batch stack_padded(std::vector<Sample> samples,
                   const std::vector<int64_t>& numbers,
                   const Padding& padding);

}  // namespace rondo::detail
