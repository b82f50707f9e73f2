#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rondo::detail {

/// How a tensor lies in a record.
struct TensorPlacement {
  at::ScalarType type = at::kFloat;
  size_t record = 0;         ///< index into StoragePlan::records
  int64_t record_numel = 0;  ///< elements in the whole record
  int64_t offset = 0;        ///< of the first element, in elements
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

/// Which bytes are saved for a list of tensors.
/// - A storage that several of them use is saved once, from the first to the last element that one
/// of
///   them reaches; they stay views of it. (Views of one storage as different types part.)
/// - A tensor that alone uses its storage is saved without the rest of it: as it lies when it
/// leaves
///   no gaps, else as a contiguous copy.
struct StoragePlan {
  std::vector<TensorPlacement> tensors;  ///< one for each tensor, in order
  /// One for each record: its bytes are those of `.cpu().contiguous()`, made when they are written,
  /// so that one copy exists at a time.
  std::vector<at::Tensor> records;
};

/// \param tensors  defined, strided, with storage, without conjugate and negative bits
StoragePlan plan_storages(const std::vector<at::Tensor>& tensors);

}  // namespace rondo::detail
