#include "data/batch_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#endif

namespace rondo {

namespace {

constexpr size_t kLarge = size_t{128} << 10;  // bytes; glibc begins to map blocks there by itself

/// Pages of the system's.
class Mapping {
 public:
  Mapping() = default;

  /// Empty when there is not so much memory.
  explicit Mapping(size_t bytes) {
    void* const begin =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin != MAP_FAILED) {
      begin_ = begin;
      bytes_ = bytes;
    }
  }

  Mapping(Mapping&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  ~Mapping() {
    if (begin_ != nullptr) {
      ASAN_UNPOISON_MEMORY_REGION(begin_, bytes_);
      ::munmap(begin_, bytes_);
    }
  }

  void* begin() const { return begin_; }

  size_t bytes() const { return bytes_; }

 private:
  void* begin_ = nullptr;
  size_t bytes_ = 0;
};

thread_local BatchMemory* memory_of_thread = nullptr;

}  // namespace

class BatchMemory::Blocks {
 public:
  /// Empty when there is not so much memory.
  Mapping take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    Mapping block = take_unused(bytes);
    if (block.begin() == nullptr) {
      most_in_use_ = std::max(most_in_use_, in_use_ + bytes);
      make_room(bytes);
      block = Mapping(bytes);
    }
    in_use_ += block.bytes();
    return block;
  }

  void give_back(Mapping block) {
    const std::lock_guard lock(mutex_);
    in_use_ -= block.bytes();
    if (!is_closed_) {
      ASAN_POISON_MEMORY_REGION(block.begin(), block.bytes());
      unused_bytes_ += block.bytes();
      unused_.push_back(std::move(block));
    }
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    unused_.clear();
  }

 private:
  /// The smallest that is large enough, unless it is so large that it would better be another's.
  Mapping take_unused(size_t bytes) {
    auto found = unused_.end();
    for (auto block = unused_.begin(); block != unused_.end(); ++block) {
      const bool fits = block->bytes() >= bytes && block->bytes() <= bytes + bytes / 4;
      if (fits && (found == unused_.end() || block->bytes() < found->bytes())) {
        found = block;
      }
    }
    if (found == unused_.end()) {
      return {};
    }
    Mapping block = std::move(*found);
    unused_.erase(found);
    unused_bytes_ -= block.bytes();
    ASAN_UNPOISON_MEMORY_REGION(block.begin(), block.bytes());
    return block;
  }

  /// Gives the oldest unused blocks to the system, until so many bytes more are no more in all than
  /// were in use at once.
  void make_room(size_t bytes) {
    auto oldest = unused_.begin();
    while (oldest != unused_.end() && in_use_ + unused_bytes_ + bytes > most_in_use_) {
      unused_bytes_ -= oldest->bytes();
      ++oldest;
    }
    unused_.erase(unused_.begin(), oldest);
  }

  std::mutex mutex_;  // guards what follows
  std::vector<Mapping> unused_;
  size_t unused_bytes_ = 0;
  size_t in_use_ = 0;
  size_t most_in_use_ = 0;
  bool is_closed_ = false;
};

BatchMemory::BatchMemory() : blocks_(std::make_shared<Blocks>()) {}

BatchMemory::~BatchMemory() {
  blocks_->close();
}

BatchMemory::Scope::Scope(BatchMemory& memory)
    : before_(std::exchange(memory_of_thread, &memory)) {}

BatchMemory::Scope::~Scope() {
  memory_of_thread = before_;
}

at::Tensor batch_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  using Blocks = BatchMemory::Blocks;

  struct Lent {
    std::shared_ptr<Blocks> blocks;
    Mapping block;
  };

  const auto count = static_cast<size_t>(
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
  const size_t bytes = count * c10::elementSize(dtype);
  if (memory_of_thread == nullptr || bytes < kLarge) {
    return at::empty(sizes, dtype);
  }
  const std::shared_ptr<Blocks>& blocks = memory_of_thread->blocks_;
  auto lent = std::make_unique<Lent>(Lent{blocks, blocks->take(bytes)});
  void* const begin = lent->block.begin();
  if (begin == nullptr) {
    return at::empty(sizes, dtype);  // which says how much it is
  }
  const auto give_back = [](void* context) {
    const std::unique_ptr<Lent> back(static_cast<Lent*>(context));
    back->blocks->give_back(std::move(back->block));
  };
  c10::DataPtr memory(begin, lent.release(), give_back, c10::kCPU);
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       bytes,
                       std::move(memory),
                       c10::GetCPUAllocator(),
                       /*resizable=*/true);
  return at::empty({0}, dtype).set_(std::move(storage), 0, sizes);
}

}  // namespace rondo
