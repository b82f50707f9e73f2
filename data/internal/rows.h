#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor_map.h"

namespace rondo::detail {

/// \throws UsageError  when `index` is not in [0, size)
void check_index(int64_t index, int64_t size);

/// The rows `indices` of `rows`, copied without LibTorch's threads.
/// \param rows  contiguous, on the CPU, with at least one dimension
at::Tensor gather_rows(const at::Tensor& rows, const std::vector<int64_t>& indices);

/// The one sample of a batch of one.
Sample only_sample(const Batch& batch);

/// Which rows of a file are taken, as [first, end).
/// \param component  for the message: "CsvTable"
/// \param count      absent: up to the end
/// \throws UsageError  when they are not all there, or none
std::pair<int64_t, int64_t> checked_range(std::string_view component,
                                          int64_t first,
                                          std::optional<int64_t> count,
                                          int64_t available);

}  // namespace rondo::detail
