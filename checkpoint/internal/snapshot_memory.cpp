#include "checkpoint/internal/snapshot_memory.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "checkpoint/internal/stream_copy.h"

namespace rondo::detail {

namespace {

constexpr int64_t kAlignment = 64;  // of at::empty too, and a multiple of every element's size

int64_t room_for(const at::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

at::Tensor block_of(int64_t bytes) {
  at::Tensor block = at::empty({bytes}, at::kByte);
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(block.data_ptr()) + page - 1) / page * page;
  const auto end =
      (reinterpret_cast<uintptr_t>(block.data_ptr()) + static_cast<uintptr_t>(bytes)) / page * page;
  if (begin < end) {
    // Advice only: without it the first copy takes longer.
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return block;
}

/// \param to  bytes
void copy(const at::Tensor& to, const at::Tensor& from, DeferredCopy& deferred) {
  auto* place = static_cast<char*>(to.data_ptr());
  if (DeferredCopy::suits(from) && deferred.add(from, place)) {
    return;
  }
  if (from.device().is_cpu() && from.is_contiguous()) {
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
  if (!block_.defined() || block_.numel() < bytes) {
    block_ = at::Tensor();  // first: there is never memory for two copies
    block_ = block_of(bytes);
  }
  auto deferred = std::make_unique<DeferredCopy>();
  deferred->expect(tensors);
  int64_t offset = 0;
  for (at::Tensor* tensor : in_order_of_copies(tensors)) {
    const at::Tensor place = block_.narrow(0, offset, static_cast<int64_t>(tensor->nbytes()));
    offset += room_for(*tensor);
    copy(place, *tensor, *deferred);
    *tensor = place;
  }
  deferred_ = std::move(deferred);
}

double SnapshotMemory::finish() {
  deferred_->finish();
  return deferred_->waited_s();
}

}  // namespace rondo::detail
