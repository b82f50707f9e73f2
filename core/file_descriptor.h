#pragma once

#include <unistd.h>

#include <utility>

namespace rondo::detail {

/// A file descriptor that is closed when it goes; below 0: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}

  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}

  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~FileDescriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  int get() const { return fd_; }

  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace rondo::detail
