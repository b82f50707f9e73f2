#include "checkpoint/internal/deferred_copy.h"

#include <c10/core/CPUAllocator.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "checkpoint/internal/stream_copy.h"
#include "core/memory_block.h"

namespace rondo::detail {

namespace {

/// Below this, copying at once takes less time than asking the system to hold the pages.
constexpr size_t kLeast = size_t{1} << 18;

/// Each ends at a multiple of this address: the kernel would split a large page that is let go in
/// parts. Copying one takes 0.2 ms or so.
constexpr size_t kPiece = size_t{2} << 20;

/// Two that are no further apart are made ready in one: what one allocation after the other leaves
/// between them, and too little to hold another's large tensor.
constexpr ptrdiff_t kGap = ptrdiff_t{64} << 10;

/// Neighbours in a block, and its ends, that are no further apart are held together: there are
/// small tensors between.
constexpr ptrdiff_t kGapInBlock = ptrdiff_t{2} << 20;

size_t until_multiple(const char* place, size_t unit) {
  return (unit - reinterpret_cast<uintptr_t>(place) % unit) % unit;
}

/// False for memory that a user or a loader lent to a tensor, or that is shared or mapped: when
/// that goes away nobody here would know.
bool is_own_memory(const c10::Storage& storage) {
  const c10::DataPtr& memory = storage.data_ptr();
  return storage.unsafeGetStorageImpl()->resizable() &&
         (memory.get_deleter() == c10::GetCPUAllocator()->raw_deleter() ||
          MemoryBlock::extent_around(memory).begin != nullptr);
}

size_t page_bytes() {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

/// The first page that begins there or behind.
const char* page_from(const char* place) {
  return place + until_multiple(place, page_bytes());
}

/// Of the page that a place lies in.
const char* page_of(const char* place) {
  return place - reinterpret_cast<uintptr_t>(place) % page_bytes();
}

}  // namespace

DeferredCopy::~DeferredCopy() {
  pages_.reset();  // first: whoever frees a tensor's memory may write to it
  for (Part& part : parts_) {
    let_go(part);
  }
}

void DeferredCopy::let_go(Part& part) noexcept {
  if (part.storage) {
    part.storage.unsafeGetStorageImpl()->set_resizable(true);
    part.storage = {};
  }
}

bool DeferredCopy::suits(const at::Tensor& tensor) {
  return tensor.nbytes() >= kLeast && tensor.device().is_cpu() && tensor.is_contiguous() &&
         is_own_memory(tensor.storage());
}

void DeferredCopy::add(const at::Tensor& tensor, char* to) {
  parts_.push_back({static_cast<const char*>(tensor.data_ptr()),
                    to,
                    tensor.nbytes(),
                    MemoryBlock::extent_around(tensor.storage().data_ptr()),
                    tensor.storage()});
  tensor.storage().unsafeGetStorageImpl()->set_resizable(false);
}

void DeferredCopy::hold() {
  std::sort(parts_.begin(), parts_.end(), [](const Part& left, const Part& right) {
    return left.from < right.from;
  });
  const std::vector<Region> regions = regions_of_parts();
  if (pages_->is_available()) {
    prepare(regions);
  }
  for (const Region& region : regions) {
    if (!hold(region)) {
      std::for_each(region.first, region.last, [](Part& part) {
        stream_copy(part.to, part.from, part.bytes);
        let_go(part);
      });
    }
  }
  since_held_.emplace();
}

std::vector<DeferredCopy::Region> DeferredCopy::regions_of_parts() {
  std::vector<Region> regions;
  for (auto first = parts_.begin(); first != parts_.end();) {
    auto last = std::next(first);
    while (last != parts_.end() && are_neighbours(*std::prev(last), *last)) {
      ++last;
    }
    const char* begin = first->from;
    const char* end = std::prev(last)->end();
    if (const MemoryBlock::Extent& block = first->block; block.begin != nullptr) {
      begin = begin - block.begin <= kGapInBlock ? block.begin : begin;
      end = block.end - end <= kGapInBlock ? block.end : end;
    }
    regions.push_back({first, last, page_from(begin), page_of(end)});
    first = last;
  }
  return regions;
}

bool DeferredCopy::are_neighbours(const Part& part, const Part& next) {
  return part.block.begin != nullptr && part.block.begin == next.block.begin &&
         next.from - part.end() <= kGapInBlock;
}

// Asking the system once for many neighbours is faster.
void DeferredCopy::prepare(const std::vector<Region>& regions) {
  for (auto region = regions.begin(); region != regions.end();) {
    const char* const begin = region->begin;
    const char* end = region->end;
    for (++region; region != regions.end() && region->begin - end <= kGap; ++region) {
      end = std::max(end, region->end);
    }
    if (begin < end) {
      pages_->prepare(begin, static_cast<size_t>(end - begin));
    }
  }
}

bool DeferredCopy::hold(const Region& region) {
  if (!pages_->is_available() || region.begin >= region.end ||
      !pages_->hold(region.begin, static_cast<size_t>(region.end - region.begin))) {
    return false;
  }
  for (const char* place = region.begin; place < region.end;) {
    const size_t bytes =
        std::min(static_cast<size_t>(region.end - place), until_multiple(place + 1, kPiece) + 1);
    pieces_.push_back({place, bytes});
    place += bytes;
  }
  keep_edge(region, region.first->from, region.begin);
  keep_edge(region, region.end, std::prev(region.last)->end());
  return true;
}

// What of a region's tensors lies from begin to end, where it is not held.
void DeferredCopy::keep_edge(const Region& region, const char* begin, const char* end) {
  for (auto part = region.first; part != region.last; ++part) {
    const char* const from = std::max(begin, part->from);
    const char* const until = std::min(end, part->end());
    if (from < until) {
      edges_.push_back({std::string(from, until), part->to + (from - part->from)});
    }
  }
}

// Allocates nothing: who waits may have the allocator's lock.
void DeferredCopy::finish() noexcept {
  double last_look = 0.0;
  for (size_t left = pieces_.size(); left > 0; --left) {
    note_writers();
    Piece& piece = next_piece();
    copy(piece.from, piece.bytes);
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

// What of the parts lies there.
void DeferredCopy::copy(const char* from, size_t bytes) const noexcept {
  const char* const end = from + bytes;
  auto part = std::partition_point(
      parts_.begin(), parts_.end(), [from](const Part& p) { return p.end() <= from; });
  for (; part != parts_.end() && part->from < end; ++part) {
    const char* const begin = std::max(from, part->from);
    stream_copy(part->to + (begin - part->from),
                begin,
                static_cast<size_t>(std::min(end, part->end()) - begin));
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
