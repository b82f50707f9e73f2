#include "core/flat_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/memory_block.h"

namespace rondo {

namespace {

constexpr int64_t kCacheLine = 64;  // bytes; also a multiple of every element size

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

at::Tensor make_like(const at::Tensor& value, c10::DataPtr memory) {
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       static_cast<size_t>(bytes_of(value)),
                       std::move(memory),
                       c10::GetAllocator(value.device().type()),
                       /*resizable=*/true);
  at::Tensor made =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), value.key_set(), value.dtype());
  const bool is_dense = value.is_non_overlapping_and_dense();
  made.unsafeGetTensorImpl()->set_sizes_and_strides(
      value.sizes(), is_dense ? value.strides().vec() : contiguous_strides(value.sizes()));
  return made;
}

}  // namespace

bool FlatMemory::may_move(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return tensor.is_cpu() && storage.unsafeGetStorageImpl()->resizable() &&
         storage.data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter();
}

void FlatMemory::move(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  const auto is_it = [&](const Moved& moved) {
    return moved.storage.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
  };
  if (storage.nbytes() > 0 && std::none_of(moved_.begin(), moved_.end(), is_it)) {
    moved_.push_back({storage, reserve(static_cast<int64_t>(storage.nbytes()))});
  }
}

void FlatMemory::add_like(const at::Tensor& value) {
  added_.push_back({value, reserve(bytes_of(value))});
}

std::vector<at::Tensor> FlatMemory::allocate() {
  const bool is_on_cpu = added_.empty() || added_.front().like.is_cpu();
  const MemoryBlock block(bytes_, is_on_cpu ? c10::kCPU : added_.front().like.device());
  for (const Moved& moved : moved_) {
    std::memcpy(block.data() + moved.offset, moved.storage.data(), moved.storage.nbytes());
    moved.storage.set_data_ptr_noswap(block.part(moved.offset));
  }
  std::vector<at::Tensor> made;
  made.reserve(added_.size());
  for (const Added& added : added_) {
    made.push_back(make_like(added.like, block.part(added.offset)));
  }
  return made;
}

int64_t FlatMemory::reserve(int64_t bytes) {
  const int64_t offset = bytes_;
  bytes_ += (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return offset;
}

}  // namespace rondo
