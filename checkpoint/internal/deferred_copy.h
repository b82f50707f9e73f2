#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/internal/held_pages.h"
#include "core/memory_block.h"
#include "core/stopwatch.h"

namespace rondo::detail {

/// Copies of tensors as they are now that are made later, by another thread, while their owner goes
/// on: whoever writes to what is not copied yet waits until that piece is (copy on write, by
/// HeldPages). Until it is destroyed the tensors live and LibTorch refuses to resize their
/// storages, which would take the memory away from the copy.
class DeferredCopy {
 public:
  DeferredCopy() = default;
  DeferredCopy(const DeferredCopy&) = delete;
  DeferredCopy& operator=(const DeferredCopy&) = delete;
  /// Writers go on, whether or not the copy was finished.
  ~DeferredCopy();

  /// True for what may be deferred and is worth it: large, contiguous, on the CPU, in memory of
  /// LibTorch's own or in a MemoryBlock.
  static bool suits(const at::Tensor& tensor);

  /// Adds a tensor that suits. \param to  room for the tensor's bytes
  void add(const at::Tensor& tensor, char* to);

  /// Begins: what was added is as it is now. `finish` must follow soon, since from now on writers
  /// wait. What the system does not hold is copied at once. Neighbours in a MemoryBlock are held
  /// together, with what lies between and around them: to hold a part of a large page splits it.
  void hold();

  /// Makes the copies, those that somebody waits for first. Once, on any thread.
  void finish() noexcept;

  /// Seconds in which somebody waited, known after `finish`; up to a piece's copy too much for
  /// each.
  double waited_s() const { return waited_s_; }

 private:
  /// Of a tensor: all of it.
  struct Part {
    const char* from = nullptr;
    char* to = nullptr;
    size_t bytes = 0;
    MemoryBlock::Extent block;  ///< that it lies in, or none
    c10::Storage storage;       ///< kept as it is; null once it was copied at once

    const char* end() const { return from + bytes; }
  };

  /// Of what is held.
  struct Piece {
    const char* from = nullptr;
    size_t bytes = 0;
    bool is_wanted = false;
    bool is_copied = false;
  };

  /// What shares its page with others, and is not held.
  struct Edge {
    std::string bytes;
    char* to = nullptr;
  };

  /// Whole pages that are held together for some of the parts.
  struct Region {
    std::vector<Part>::iterator first;
    std::vector<Part>::iterator last;
    const char* begin = nullptr;
    const char* end = nullptr;  ///< not behind `begin` where there is no whole page
  };

  static void let_go(Part& part) noexcept;
  static bool are_neighbours(const Part& part, const Part& next);
  std::vector<Region> regions_of_parts();
  void prepare(const std::vector<Region>& regions);
  bool hold(const Region& region);
  void keep_edge(const Region& region, const char* begin, const char* end);
  void copy(const char* from, size_t bytes) const noexcept;
  Piece& next_piece() noexcept;
  void note_writers() noexcept;
  void mark_copied(Piece& piece) noexcept;

  std::optional<HeldPages> pages_{std::in_place};  // until all is copied
  std::vector<Part> parts_;                        // by address, once `hold` was called
  std::vector<Piece> pieces_;                      // by address
  std::vector<Edge> edges_;
  std::optional<Stopwatch> since_held_;
  size_t copied_before_ = 0;  // pieces: all before this one are
  size_t wanted_ = 0;         // pieces that are not copied
  double waited_s_ = 0.0;
};

}  // namespace rondo::detail
