#include "data/internal/rows.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "data/batch_memory.h"

namespace rondo::detail {

void check_index(int64_t index, int64_t size) {
  if (index < 0 || index >= size) {
    throw UsageError(fmt::format("there is no sample {}: there are {}", index, size));
  }
}

at::Tensor gather_rows(const at::Tensor& rows, const std::vector<int64_t>& indices) {
  std::vector<int64_t> shape = rows.sizes().vec();
  const int64_t available = shape[0];
  shape[0] = static_cast<int64_t>(indices.size());
  at::Tensor gathered = batch_tensor(shape, rows.scalar_type());
  const size_t row_bytes = available == 0 ? 0 : rows.nbytes() / static_cast<size_t>(available);
  const auto* from = static_cast<const char*>(rows.data_ptr());
  auto* to = static_cast<char*>(gathered.data_ptr());
  for (const int64_t index : indices) {
    check_index(index, available);
    if (row_bytes > 0) {
      std::memcpy(to, from + static_cast<size_t>(index) * row_bytes, row_bytes);
    }
    to += row_bytes;
  }
  return gathered;
}

Sample only_sample(const Batch& batch) {
  Sample sample;
  for (const auto& [name, tensor] : batch.items()) {
    sample.set(name, tensor.select(0, 0));
  }
  return sample;
}

std::pair<int64_t, int64_t> checked_range(std::string_view component,
                                          int64_t first,
                                          std::optional<int64_t> count,
                                          int64_t available) {
  const bool holds = first >= 0 && first < available && count.value_or(1) >= 1 &&
                     count.value_or(1) <= available - first;
  if (!holds) {
    throw UsageError(fmt::format("{}: first = {}{} is not within the {} samples of the file",
                                 component,
                                 first,
                                 count ? fmt::format(" with count = {}", *count) : std::string(),
                                 available));
  }
  return {first, count ? first + *count : available};
}

}  // namespace rondo::detail
