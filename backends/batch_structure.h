#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {

/// Everything about a batch but its numbers: names, dtypes, shapes, strides, and which entries
/// share memory. A recorded step is valid for one structure.
class BatchStructure {
 public:
  explicit BatchStructure(const Batch& batch);

  /// Whether `batch` is of this structure. Allocates nothing.
  bool matches(const Batch& batch) const;

  /// "image float32[64, 784], label int64[64]"
  std::string to_string() const;

 private:
  struct Entry {
    std::string name;
    at::ScalarType dtype = at::kFloat;
    c10::Device device = c10::kCPU;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    size_t shares_with = 0;  // the first entry of the same memory
    int64_t distance = 0;    // to that entry's first element, in bytes
  };

  std::vector<Entry> entries_;
};

}  // namespace rondo
