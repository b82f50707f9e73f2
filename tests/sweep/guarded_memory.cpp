#include "sweep/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace rondo::test {

namespace {

constexpr size_t kAlignment = 64;
constexpr unsigned char kPattern = 0xA5;

bool holds_pattern(const char* begin, const char* end) {
  return std::all_of(begin, end, [](char c) { return static_cast<unsigned char>(c) == kPattern; });
}

}  // namespace

GuardedMemory::GuardedMemory(int64_t bytes, Side side)
    : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
      pages_(std::max<size_t>((static_cast<size_t>(bytes) + page_ - 1) / page_, 1)),
      bytes_(static_cast<size_t>(bytes)) {
  void* const mapped =
      ::mmap(nullptr, (pages_ + 2) * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::bad_alloc();
  }
  mapped_ = static_cast<char*>(mapped);
  ::mprotect(begin(), pages_ * page_, PROT_READ | PROT_WRITE);
  std::memset(begin(), kPattern, pages_ * page_);
  const size_t before = pages_ * page_ - bytes_;
  data_ = side == Side::BeginsAfterPage ? begin() : begin() + before / kAlignment * kAlignment;
}

GuardedMemory::~GuardedMemory() {
  ::munmap(mapped_, (pages_ + 2) * page_);
}

bool GuardedMemory::is_clean() const {
  return holds_pattern(begin(), data_) && holds_pattern(data_ + bytes_, end());
}

void GuardedMemory::protect() {
  ::mprotect(begin(), pages_ * page_, PROT_READ);
}

char* GuardedMemory::begin() const {
  return mapped_ + page_;
}

char* GuardedMemory::end() const {
  return begin() + pages_ * page_;
}

}  // namespace rondo::test
