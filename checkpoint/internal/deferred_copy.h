#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/internal/held_pages.h"
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
  /// LibTorch's own.
  static bool suits(const at::Tensor& tensor);

  /// Tells which tensors are about to be added, which makes adding them faster. Others are passed
  /// over.
  void expect(const std::vector<at::Tensor>& tensors);

  /// Takes over the copy of a tensor that suits. `finish` must follow soon: from now on its writers
  /// wait. \param to  room for the tensor's bytes, aligned to kStreamAlignment
  /// \return false when the system holds no pages, or not these: nothing happened then
  bool add(const at::Tensor& tensor, char* to);

  /// Makes the copies, those that somebody waits for first. Once, on any thread.
  void finish() noexcept;

  /// Seconds in which somebody waited, known after `finish`; up to a piece's copy too much for
  /// each.
  double waited_s() const { return waited_s_; }

 private:
  struct Piece {
    const char* from = nullptr;
    char* to = nullptr;
    size_t bytes = 0;
    bool is_wanted = false;
    bool is_copied = false;
  };

  /// What shares its page with others, and is not held.
  struct Edge {
    std::string bytes;
    char* to = nullptr;
  };

  Piece& next_piece() noexcept;
  void note_writers() noexcept;
  void mark_copied(Piece& piece) noexcept;

  std::optional<HeldPages> pages_{std::in_place};  // until all is copied
  std::vector<c10::Storage> storages_;
  std::vector<Piece> pieces_;  // by address, once `finish` began
  std::vector<Edge> edges_;
  std::optional<Stopwatch> since_held_;
  size_t copied_before_ = 0;  // pieces: all before this one are
  size_t wanted_ = 0;         // pieces that are not copied
  double waited_s_ = 0.0;
};

}  // namespace rondo::detail
