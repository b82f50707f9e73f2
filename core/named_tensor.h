#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace rondo {

using NamedTensor = std::pair<std::string, at::Tensor>;
using NamedTensors = std::vector<NamedTensor>;

}  // namespace rondo
