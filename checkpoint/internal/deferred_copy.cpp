#include "checkpoint/internal/deferred_copy.h"

#include <c10/core/CPUAllocator.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "checkpoint/internal/stream_copy.h"

namespace rondo::detail {

namespace {

/// Below this, copying at once takes less time than asking the system to hold the pages.
constexpr size_t kLeast = size_t{1} << 18;

/// Each ends at a multiple of this address: the kernel would split a large page that is let go in
/// parts. Copying one takes 0.2 ms or so.
constexpr size_t kPiece = size_t{2} << 20;

/// Two that are no further apart are made ready in one: what one allocation after the other leaves
/// between them, and too little to hold another's large tensor.
constexpr size_t kGap = size_t{64} << 10;

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;
};

size_t until_multiple(const char* place, size_t unit) {
  return (unit - reinterpret_cast<uintptr_t>(place) % unit) % unit;
}

/// False for memory that a user lent to a tensor, or that is shared or mapped: when that goes away
/// nobody here would know.
bool is_own_memory(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->resizable() &&
         storage.data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter();
}

/// The pages that belong to a tensor alone; empty when there are none.
Range whole_pages(const at::Tensor& tensor) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto* first = static_cast<const char*>(tensor.data_ptr());
  const size_t head = until_multiple(first, page);
  if (tensor.nbytes() < head + page) {
    return {first, first};
  }
  return {first + head, first + head + (tensor.nbytes() - head) / page * page};
}

}  // namespace

DeferredCopy::~DeferredCopy() {
  for (const c10::Storage& storage : storages_) {
    storage.unsafeGetStorageImpl()->set_resizable(true);
  }
}

bool DeferredCopy::suits(const at::Tensor& tensor) {
  return tensor.nbytes() >= kLeast && tensor.device().is_cpu() && tensor.is_contiguous() &&
         is_own_memory(tensor.storage());
}

void DeferredCopy::expect(const std::vector<at::Tensor>& tensors) {
  std::vector<Range> ranges;
  for (const at::Tensor& tensor : tensors) {
    if (suits(tensor)) {
      ranges.push_back(whole_pages(tensor));
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& left, const Range& right) {
    return left.begin < right.begin;
  });
  for (auto range = ranges.begin(); range != ranges.end();) {
    Range all = *range;
    for (++range; range != ranges.end() && range->begin <= all.end + kGap; ++range) {
      all.end = std::max(all.end, range->end);
    }
    pages_->prepare(all.begin, static_cast<size_t>(all.end - all.begin));
  }
}

bool DeferredCopy::add(const at::Tensor& tensor, char* to) {
  const auto* from = static_cast<const char*>(tensor.data_ptr());
  const Range held = whole_pages(tensor);
  const auto head = static_cast<size_t>(held.begin - from);
  const auto tail = static_cast<size_t>(held.end - from);
  if (!pages_->is_available() || held.begin == held.end || head % kStreamAlignment != 0 ||
      !pages_->hold(held.begin, tail - head)) {
    return false;
  }
  storages_.push_back(tensor.storage());
  storages_.back().unsafeGetStorageImpl()->set_resizable(false);
  for (size_t done = head; done < tail;) {
    const size_t bytes = std::min(tail - done, until_multiple(from + done + 1, kPiece) + 1);
    pieces_.push_back({from + done, to + done, bytes});
    done += bytes;
  }
  edges_.push_back({std::string(from, head), to});
  edges_.push_back({std::string(from + tail, tensor.nbytes() - tail), to + tail});
  since_held_.emplace();
  return true;
}

// Allocates nothing: who waits may have the allocator's lock.
void DeferredCopy::finish() noexcept {
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& left, const Piece& right) {
    return left.from < right.from;
  });
  double last_look = 0.0;
  for (size_t left = pieces_.size(); left > 0; --left) {
    note_writers();
    Piece& piece = next_piece();
    stream_copy(piece.to, piece.from, piece.bytes);
    const double look = since_held_->seconds();
    note_writers();
    if (wanted_ > 0) {
      waited_s_ += look - last_look;
    }
    last_look = look;
    mark_copied(piece);
  }
  pages_.reset();
  for (const Edge& edge : edges_) {
    std::memcpy(edge.to, edge.bytes.data(), edge.bytes.size());
  }
}

DeferredCopy::Piece& DeferredCopy::next_piece() noexcept {
  const auto is_next = [this](const Piece& piece) {
    return !piece.is_copied && (piece.is_wanted || wanted_ == 0);
  };
  const auto first = pieces_.begin() + static_cast<std::ptrdiff_t>(copied_before_);
  return *std::find_if(first, pieces_.end(), is_next);
}

void DeferredCopy::note_writers() noexcept {
  while (const char* place = pages_->next_waiting()) {
    const auto after = std::upper_bound(
        pieces_.begin(), pieces_.end(), place, [](const char* address, const Piece& piece) {
          return address < piece.from;
        });
    Piece& piece = *std::prev(after);
    if (piece.is_copied) {
      pages_->release(piece.from, piece.bytes);  // it came between the copy and the release
    } else if (!piece.is_wanted) {
      piece.is_wanted = true;
      ++wanted_;
    }
  }
}

void DeferredCopy::mark_copied(Piece& piece) noexcept {
  piece.is_copied = true;
  wanted_ -= piece.is_wanted ? 1 : 0;
  while (copied_before_ < pieces_.size() && pieces_[copied_before_].is_copied) {
    ++copied_before_;
  }
  pages_->release(piece.from, piece.bytes);
}

}  // namespace rondo::detail
