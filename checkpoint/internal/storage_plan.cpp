#include "checkpoint/internal/storage_plan.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace rondo::detail {

namespace {

/// The elements of a storage that tensors of one type use: [begin, end).
struct Use {
  int64_t begin = 0;
  int64_t end = 0;
  int tensors = 0;
  std::optional<size_t> record;
};

using Uses = std::map<std::pair<const c10::StorageImpl*, at::ScalarType>, Use>;

std::pair<const c10::StorageImpl*, at::ScalarType> key_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()};
}

/// One past the last element of the storage that the tensor reaches. It has elements.
int64_t end_of(const at::Tensor& tensor) {
  int64_t last = tensor.storage_offset();
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return last + 1;
}

Uses uses_of(const std::vector<at::Tensor>& tensors) {
  Uses uses;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) {
      continue;
    }
    const auto [found, is_new] = uses.try_emplace(key_of(tensor));
    Use& use = found->second;
    const int64_t begin = tensor.storage_offset();
    use.begin = is_new ? begin : std::min(use.begin, begin);
    use.end = std::max(use.end, end_of(tensor));
    ++use.tensors;
  }
  return uses;
}

/// The tensor's storage from `use.begin` to `use.end`, as a view with one dimension.
at::Tensor stretch_of(const at::Tensor& tensor, const Use& use) {
  return at::empty({0}, tensor.options())
      .set_(tensor.storage(), use.begin, {use.end - use.begin}, {1});
}

TensorPlacement place_whole(const at::Tensor& tensor, std::vector<at::Tensor>& records) {
  records.push_back(tensor);
  TensorPlacement placement;
  placement.type = tensor.scalar_type();
  placement.record = records.size() - 1;
  placement.record_numel = tensor.numel();
  placement.sizes = tensor.sizes().vec();
  placement.strides.resize(placement.sizes.size());
  int64_t stride = 1;
  for (size_t i = placement.sizes.size(); i-- > 0;) {
    placement.strides[i] = stride;
    stride *= std::max<int64_t>(placement.sizes[i], 1);
  }
  return placement;
}

TensorPlacement place_view(const at::Tensor& tensor, Use& use, std::vector<at::Tensor>& records) {
  if (!use.record) {
    use.record = records.size();
    records.push_back(stretch_of(tensor, use));
  }
  return {tensor.scalar_type(),
          *use.record,
          use.end - use.begin,
          tensor.storage_offset() - use.begin,
          tensor.sizes().vec(),
          tensor.strides().vec()};
}

}  // namespace

StoragePlan plan_storages(const std::vector<at::Tensor>& tensors) {
  Uses uses = uses_of(tensors);
  StoragePlan plan;
  plan.tensors.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const auto use = tensor.numel() == 0 ? uses.end() : uses.find(key_of(tensor));
    const bool is_empty = use == uses.end();
    const bool has_gaps = !is_empty && tensor.numel() < use->second.end - use->second.begin;
    plan.tensors.push_back(is_empty || (use->second.tensors == 1 && has_gaps)
                               ? place_whole(tensor, plan.records)
                               : place_view(tensor, use->second, plan.records));
  }
  return plan;
}

}  // namespace rondo::detail
