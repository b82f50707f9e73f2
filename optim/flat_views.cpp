#include "optim/internal/flat_views.h"

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

namespace rondo::detail {

namespace {

constexpr int64_t kCacheLine = 64;  // bytes; also a multiple of every element size

int64_t aligned(int64_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

int64_t bytes_of(const at::Tensor& value) {
  return value.numel() * static_cast<int64_t>(value.dtype().itemsize());
}

std::vector<int64_t> contiguous_strides(at::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

at::Tensor view_like(const at::Tensor& value, const c10::Storage& storage, int64_t byte_offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), value.key_set(), value.dtype());
  const bool is_dense = value.is_non_overlapping_and_dense();
  view.unsafeGetTensorImpl()->set_sizes_and_strides(
      value.sizes(),
      is_dense ? value.strides().vec() : contiguous_strides(value.sizes()),
      byte_offset / static_cast<int64_t>(value.dtype().itemsize()));
  return view;
}

}  // namespace

std::vector<at::Tensor> flat_views_like(const std::vector<at::Tensor>& values) {
  int64_t bytes = 0;
  for (const at::Tensor& value : values) {
    bytes += aligned(bytes_of(value));
  }
  std::vector<at::Tensor> views;
  if (values.empty()) {
    return views;
  }
  const c10::Storage storage(c10::Storage::use_byte_size_t(),
                             bytes,
                             c10::GetAllocator(values.front().device().type()),
                             /*resizable=*/false);
  views.reserve(values.size());
  int64_t offset = 0;
  for (const at::Tensor& value : values) {
    views.push_back(view_like(value, storage, offset));
    offset += aligned(bytes_of(value));
  }
  return views;
}

}  // namespace rondo::detail
