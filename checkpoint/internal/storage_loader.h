#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/internal/zip_reader.h"

namespace rondo::detail {

/// Reads storages, each once: small ones into memory of their own, so that who keeps a few numbers
/// does not keep the file; large ones as pages of the file, which cost no memory that the system
/// could not take back.
class StorageLoader {
 public:
  explicit StorageLoader(ZipReader& zip) : zip_(zip) {}

  /// \return the elements of record data/<key>, shape [numel]; the same storage for the same key
  /// \throws Malformed  when there is no such record, or it does not hold just these elements
  at::Tensor load(at::ScalarType type, const std::string& key, int64_t numel);

 private:
  at::Tensor read(at::ScalarType type, const std::string& key, int64_t numel);
  at::Tensor map(at::ScalarType type, const ZipRecord& record, int64_t numel);

  ZipReader& zip_;
  std::unordered_map<std::string, at::Tensor> loaded_;
};

/// The most dimensions with which LibTorch's operators work (at::TensorIterator).
constexpr size_t kMostDimensions = 64;

/// A tensor that is a view of the storage of `elements`. Sizes and strides are in elements.
/// \throws Malformed  when it would reach outside the storage
at::Tensor view_of_storage(const at::Tensor& elements,
                           int64_t offset,
                           const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& strides);

}  // namespace rondo::detail
