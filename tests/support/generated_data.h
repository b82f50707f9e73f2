#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/factory.h"
#include "data/dataset.h"

namespace rondo::test {

/// Numbers in [0, 1), the same ones in each call.
at::Tensor uniform(at::IntArrayRef sizes);

/// int64 in [0, bound), which follow from `seed`.
at::Tensor integers(at::IntArrayRef sizes, uint64_t bound, uint64_t seed);

/// Twelve square images with labels of ten classes.
Factory<DataSource> images(int64_t channels, int64_t size);

}  // namespace rondo::test
