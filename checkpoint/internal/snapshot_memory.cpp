#include "checkpoint/internal/snapshot_memory.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace rondo::detail {

namespace {

constexpr int64_t kAlignment = 64;  // of at::empty too, and a multiple of every element's size

int64_t room_for(const at::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

/// Copies by stores that leave the caches alone. \param to  aligned to 64 bytes
void stream(char* to, const char* from, size_t bytes) {
  size_t done = 0;
#ifdef __SSE2__
  constexpr size_t kLine = 64;
  for (; done + kLine <= bytes; done += kLine) {
    for (size_t part = done; part < done + kLine; part += sizeof(__m128i)) {
      const auto* source = reinterpret_cast<const __m128i*>(from + part);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), _mm_loadu_si128(source));
    }
  }
  _mm_sfence();
#endif
  if (done < bytes) {  // an empty tensor has no address
    std::memcpy(to + done, from + done, bytes - done);
  }
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

}  // namespace

void SnapshotMemory::copy(std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    bytes += room_for(tensor);
  }
  if (!block_.defined() || block_.numel() < bytes) {
    block_ = at::Tensor();  // first: there is never memory for two copies
    block_ = block_of(bytes);
  }
  int64_t offset = 0;
  for (at::Tensor& tensor : tensors) {
    const at::Tensor place = block_.narrow(0, offset, static_cast<int64_t>(tensor.nbytes()))
                                 .view(tensor.scalar_type())
                                 .view(tensor.sizes());
    offset += room_for(tensor);
    if (tensor.device().is_cpu() && tensor.is_contiguous()) {
      stream(static_cast<char*>(place.data_ptr()),
             static_cast<const char*>(tensor.data_ptr()),
             tensor.nbytes());
    } else {
      place.copy_(tensor);
    }
    tensor = place;
  }
}

}  // namespace rondo::detail
