#include "data/batch_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
#include <numeric>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#endif

namespace rondo {

namespace {

constexpr size_t kLarge = size_t{128} << 10;  // bytes; glibc begins to map blocks there by itself

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kRedzone = 4096;  // bytes behind a tensor that nobody may touch
#else
constexpr size_t kRedzone = 0;
#endif

/// Pages of the system's. A MemoryBlock would round a tensor up to its large pages.
class Mapping {
 public:
  /// Empty when there is not so much memory.
  explicit Mapping(size_t bytes) {
    void* const begin = ::mmap(
        nullptr, bytes + kRedzone, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin != MAP_FAILED) {
      begin_ = begin;
      bytes_ = bytes;
    }
  }

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ~Mapping() {
    if (begin_ != nullptr) {
      lend(bytes_ + kRedzone);
      ::munmap(begin_, bytes_ + kRedzone);
    }
  }

  void* begin() const { return begin_; }

  size_t bytes() const { return bytes_; }

  /// For a sanitizer, which sees who goes beyond, or uses what was given back.
  void lend(size_t bytes) const {
    ASAN_POISON_MEMORY_REGION(begin_, bytes_ + kRedzone);
    ASAN_UNPOISON_MEMORY_REGION(begin_, bytes);
  }

 private:
  void* begin_ = nullptr;
  size_t bytes_ = 0;
};

thread_local BatchMemory* memory_of_thread = nullptr;

}  // namespace

class BatchMemory::Blocks {
 public:
  /// One, or none when there is not so much memory.
  std::list<Mapping> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::list<Mapping> block = take_unused(bytes);
    if (block.empty()) {
      keep_unused(std::max(most_in_use_, in_use_ + bytes) - in_use_ - bytes);
      block.emplace_back(bytes);
      if (block.front().begin() == nullptr) {
        keep_unused(0);
        block.clear();
        block.emplace_back(bytes);
      }
    }
    if (block.front().begin() == nullptr) {
      return {};
    }
    in_use_ += block.front().bytes();
    most_in_use_ = std::max(most_in_use_, in_use_);
    block.front().lend(bytes);
    return block;
  }

  /// \param block  one; never throws, as a list of one is hooked into another
  void give_back(std::list<Mapping> block) {
    const std::lock_guard lock(mutex_);
    in_use_ -= block.front().bytes();
    if (!is_closed_) {
      block.front().lend(0);
      unused_bytes_ += block.front().bytes();
      unused_.splice(unused_.end(), block);
    }
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    keep_unused(0);
  }

 private:
  /// The smallest that is large enough. One that is much larger is left to another tensor.
  std::list<Mapping> take_unused(size_t bytes) {
    auto found = unused_.end();
    for (auto block = unused_.begin(); block != unused_.end(); ++block) {
      const bool fits = block->bytes() >= bytes && block->bytes() <= bytes + bytes / 16;
      if (fits && (found == unused_.end() || block->bytes() < found->bytes())) {
        found = block;
      }
    }
    std::list<Mapping> block;
    if (found != unused_.end()) {
      unused_bytes_ -= found->bytes();
      block.splice(block.end(), unused_, found);
    }
    return block;
  }

  /// Gives the oldest unused blocks to the system until there are no more than `most` bytes.
  void keep_unused(size_t most) {
    while (unused_bytes_ > most) {
      unused_bytes_ -= unused_.front().bytes();
      unused_.pop_front();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::list<Mapping> unused_;
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
  struct Lent {
    std::shared_ptr<BatchMemory::Blocks> from;
    std::list<Mapping> block = {};
  };

  const auto count = static_cast<size_t>(
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
  const size_t bytes = count * c10::elementSize(dtype);
  if (memory_of_thread == nullptr || bytes < kLarge) {
    return at::empty(sizes, dtype);
  }
  auto lent = std::make_unique<Lent>(Lent{memory_of_thread->blocks_});
  lent->block = lent->from->take(bytes);
  if (lent->block.empty()) {
    return at::empty(sizes, dtype);  // which says how much it is
  }
  void* const begin = lent->block.front().begin();
  const auto give_back = [](void* context) {
    const std::unique_ptr<Lent> back(static_cast<Lent*>(context));
    back->from->give_back(std::move(back->block));
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
