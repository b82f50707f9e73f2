#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {
class Dataset;
}

namespace rondo::detail {

/// \throws DataError  naming the index and nesting what `get` threw
std::vector<Sample> get_samples(const Dataset& data, const std::vector<int64_t>& indices);

/// As `stack`.
/// \param numbers  how messages call the samples
Batch stack_samples(const std::vector<Sample>& samples, const std::vector<int64_t>& numbers);

}  // namespace rondo::detail
