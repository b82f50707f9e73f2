#include "checkpoint/internal/snapshot_memory.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "checkpoint/internal/stream_copy.h"

namespace rondo::detail {

namespace {

constexpr int64_t kAlignment = 64;  // of a block too, and a multiple of every element's size

int64_t room_for(const at::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

/// uint8 [bytes], which holds the block.
at::Tensor bytes_at(const MemoryBlock& block, int64_t offset, int64_t bytes) {
  return at::from_blob(
      block.data() + offset, {bytes}, [block](void*) {}, at::kByte);
}

/// \param to  bytes
void copy(const at::Tensor& to, const at::Tensor& from, DeferredCopy& deferred) {
  auto* place = static_cast<char*>(to.data_ptr());
  if (DeferredCopy::suits(from)) {
    deferred.add(from, place);
  } else if (from.device().is_cpu() && from.is_contiguous()) {
    stream_copy(place, static_cast<const char*>(from.data_ptr()), from.nbytes());
  } else {
    to.view(from.scalar_type()).view(from.sizes()).copy_(from);
  }
}

/// Those that are copied at once first: others shall not wait for them, and the block's new pages
/// behind them are first touched by the thread that copies.
std::vector<at::Tensor*> in_order_of_copies(std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor*> order;
  order.reserve(tensors.size());
  for (at::Tensor& tensor : tensors) {
    order.push_back(&tensor);
  }
  std::stable_partition(order.begin(), order.end(), [](const at::Tensor* tensor) {
    return !DeferredCopy::suits(*tensor);
  });
  return order;
}

}  // namespace

void SnapshotMemory::begin(std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    bytes += room_for(tensor);
  }
  if (!block_ || block_->bytes() < bytes) {
    block_.reset();  // first: there is never memory for two copies
    block_ = std::make_unique<MemoryBlock>(bytes);
  }
  auto deferred = std::make_unique<DeferredCopy>();
  int64_t offset = 0;
  for (at::Tensor* tensor : in_order_of_copies(tensors)) {
    const at::Tensor place = bytes_at(*block_, offset, static_cast<int64_t>(tensor->nbytes()));
    offset += room_for(*tensor);
    copy(place, *tensor, *deferred);
    *tensor = place;
  }
  deferred->hold();
  deferred_ = std::move(deferred);
}

double SnapshotMemory::finish() {
  deferred_->finish();
  return deferred_->waited_s();
}

}  // namespace rondo::detail
