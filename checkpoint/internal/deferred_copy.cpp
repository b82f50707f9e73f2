#include "checkpoint/internal/deferred_copy.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "checkpoint/internal/stream_copy.h"

namespace rondo::detail {

namespace {

/// As long as a writer waits for at most: 0.1 ms or so.
constexpr size_t kPiece = size_t{1} << 20;

constexpr size_t kAlignment = 64;

size_t until_multiple(const char* place, size_t unit) {
  return (unit - reinterpret_cast<uintptr_t>(place) % unit) % unit;
}

/// False for memory that a user lent to a tensor, or that is shared or mapped: when that goes away
/// nobody here would know.
bool is_own_memory(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->resizable() &&
         storage.data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter();
}

}  // namespace

DeferredCopy::~DeferredCopy() {
  for (const at::Tensor& tensor : tensors_) {
    tensor.storage().unsafeGetStorageImpl()->set_resizable(true);
  }
}

bool DeferredCopy::add(const at::Tensor& tensor, char* to) {
  if (!pages_->is_available() || tensor.nbytes() < kLeast || !is_own_memory(tensor.storage())) {
    return false;
  }
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto* from = static_cast<const char*>(tensor.data_ptr());
  const size_t head = until_multiple(from, page);
  const size_t held = (tensor.nbytes() - head) / page * page;
  if (head % kAlignment != 0) {
    return false;  // the copy's own lines would begin elsewhere
  }
  if (!pages_->hold(from + head, held)) {
    return false;
  }
  tensors_.push_back(tensor);
  tensor.storage().unsafeGetStorageImpl()->set_resizable(false);
  for (size_t done = head; done < head + held; done += kPiece) {
    pieces_.push_back({from + done, to + done, std::min(kPiece, head + held - done)});
  }
  const size_t tail = head + held;
  edges_.push_back({std::string(from, head), to});
  edges_.push_back({std::string(from + tail, tensor.nbytes() - tail), to + tail});
  return true;
}

// Allocates nothing: who waits may have the allocator's lock.
void DeferredCopy::finish() noexcept {
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& left, const Piece& right) {
    return left.from < right.from;
  });
  double nobody_waited = 0.0;  // the last time that this was certain
  for (auto next = pieces_.begin(); next != pieces_.end();) {
    const double look = watch_.seconds();
    if (const char* place = pages_->next_waiting()) {
      copy(piece_at(place));
      const double released = watch_.seconds();
      waited_s_ += released - nobody_waited;
      nobody_waited = released;
    } else {
      nobody_waited = look;
      copy(*next++);
    }
  }
  pages_.reset();
  for (const Edge& edge : edges_) {
    std::memcpy(edge.to, edge.bytes.data(), edge.bytes.size());
  }
}

void DeferredCopy::copy(Piece& piece) noexcept {
  if (!piece.is_copied) {
    stream_copy(piece.to, piece.from, piece.bytes);
    piece.is_copied = true;
    pages_->release(piece.from, piece.bytes);
  }
}

DeferredCopy::Piece& DeferredCopy::piece_at(const char* place) noexcept {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), place, [](const char* address, const Piece& piece) {
        return address < piece.from;
      });
  return *std::prev(after);
}

}  // namespace rondo::detail
