#pragma once

#include <ATen/core/Tensor.h>

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
  /// Bytes below which copying at once takes less time than asking the system to hold pages.
  static constexpr size_t kLeast = size_t{1} << 18;

  DeferredCopy() = default;
  DeferredCopy(const DeferredCopy&) = delete;
  DeferredCopy& operator=(const DeferredCopy&) = delete;
  /// Writers go on, whether or not the copy was finished.
  ~DeferredCopy();

  /// Takes over the copy of a contiguous tensor on the CPU. `finish` must follow soon: from now on
  /// its writers wait. \param to  room for the tensor's bytes, aligned to 64 bytes
  /// \return false when the copy cannot be deferred (the system holds no pages, the memory is not
  ///         LibTorch's own) or is too small to be worth it: nothing happened then
  bool add(const at::Tensor& tensor, char* to);

  /// Makes the copies, those that somebody waits for first. Once, on any thread.
  void finish() noexcept;

  /// Seconds that writers waited, at most; known after `finish`.
  double waited_s() const { return waited_s_; }

 private:
  struct Piece {
    const char* from = nullptr;
    char* to = nullptr;
    size_t bytes = 0;
    bool is_copied = false;
  };

  /// What shares its page with others, and is not held.
  struct Edge {
    std::string bytes;
    char* to = nullptr;
  };

  void copy(Piece& piece) noexcept;
  Piece& piece_at(const char* place) noexcept;

  std::optional<HeldPages> pages_{std::in_place};
  std::vector<at::Tensor> tensors_;
  std::vector<Piece> pieces_;
  std::vector<Edge> edges_;
  Stopwatch watch_;
  double waited_s_ = 0.0;
};

}  // namespace rondo::detail
