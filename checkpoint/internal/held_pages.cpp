#include "checkpoint/internal/held_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>

namespace rondo::detail {

namespace {

// Younger than the kernel headers of Debian 12.
constexpr uint64_t kProtectsUntouchedPages = uint64_t{1} << 13;  // UFFD_FEATURE_WP_UNPOPULATED

int open_handle(int extra_flags) {
  return static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | extra_flags));
}

uffdio_range range_of(const char* begin, size_t bytes) {
  return {reinterpret_cast<uintptr_t>(begin), bytes};
}

/// \param mode  UFFDIO_WRITEPROTECT_MODE_WP, or 0 for none
bool protect(int fd, const char* begin, size_t bytes, uint64_t mode) {
  uffdio_writeprotect request = {range_of(begin, bytes), mode};
  return ::ioctl(fd, UFFDIO_WRITEPROTECT, &request) == 0;
}

/// Protects no more, and lets those who wait go on.
void let_go(int fd, const char* begin, size_t bytes) {
  uffdio_range range = range_of(begin, bytes);
  ::ioctl(fd, UFFDIO_UNREGISTER, &range);
  ::ioctl(fd, UFFDIO_WAKE, &range);
}

}  // namespace

HeldPages::HeldPages() noexcept : fd_(open_handle(0)) {
  if (fd_ < 0) {
    fd_ = open_handle(UFFD_USER_MODE_ONLY);  // needs no privilege
  }
  if (fd_ < 0) {
    return;
  }
  uffdio_api wanted = {};
  wanted.api = UFFD_API;
  wanted.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kProtectsUntouchedPages;
  if (::ioctl(fd_, UFFDIO_API, &wanted) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

HeldPages::~HeldPages() {
  if (fd_ < 0) {
    return;
  }
  // Closing would do, unless a child process that was forked meanwhile has the handle as well.
  for (const auto& [begin, bytes] : watched_) {
    let_go(fd_, begin, bytes);
  }
  ::close(fd_);
}

void HeldPages::prepare(const char* begin, size_t bytes) {
  watch(begin, bytes);
}

bool HeldPages::hold(const char* begin, size_t bytes) {
  if (!is_watched(begin, bytes) && !watch(begin, bytes)) {
    return false;
  }
  if (protect(fd_, begin, bytes, UFFDIO_WRITEPROTECT_MODE_WP)) {
    return true;
  }
  release(begin, bytes);
  return false;
}

bool HeldPages::watch(const char* begin, size_t bytes) {
  const auto [place, is_new] = watched_.insert({begin, bytes});
  if (!is_new) {
    return false;  // it reaches further than what is watched from there on
  }
  uffdio_register request = {};
  request.range = range_of(begin, bytes);
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(fd_, UFFDIO_REGISTER, &request) == 0) {
    return true;
  }
  watched_.erase(place);
  return false;
}

bool HeldPages::is_watched(const char* begin, size_t bytes) const {
  const auto after = watched_.upper_bound(begin);
  if (after == watched_.begin()) {
    return false;
  }
  const auto& [first, length] = *std::prev(after);
  return begin + bytes <= first + length;
}

void HeldPages::release(const char* begin, size_t bytes) noexcept {
  protect(fd_, begin, bytes, 0);
}

const char* HeldPages::next_waiting() noexcept {
  uffd_msg message = {};
  while (::read(fd_, &message, sizeof message) == sizeof message) {
    if (message.event == UFFD_EVENT_PAGEFAULT) {
      return reinterpret_cast<const char*>(message.arg.pagefault.address);
    }
  }
  return nullptr;
}

}  // namespace rondo::detail
