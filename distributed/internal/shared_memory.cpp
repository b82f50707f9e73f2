#include "distributed/internal/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

/// Reserves every page. A limit of file sizes returns an error here and does not end the process.
int reserve(int file, size_t bytes) {
  struct sigaction before = {};
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignored, &before);
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  }
  ::sigaction(SIGXFSZ, &before, nullptr);
  return error;
}

}  // namespace

SharedMemory::SharedMemory(detail::FileDescriptor file, size_t bytes)
    : file_(std::move(file)), bytes_(bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (data == MAP_FAILED) {
    throw IoError(fmt::format("cannot map {} bytes that ranks share", bytes), errno);
  }
  data_ = static_cast<char*>(data);
}

SharedMemory SharedMemory::make(size_t bytes) {
  detail::FileDescriptor file(::memfd_create("rondo_ranks", MFD_CLOEXEC));
  if (file.get() < 0) {
    throw IoError("cannot make memory that ranks share", errno);
  }
  if (const int error = reserve(file.get(), bytes); error != 0) {
    throw IoError(fmt::format("cannot reserve {} bytes that ranks share", bytes), error);
  }
  return {std::move(file), bytes};
}

SharedMemory SharedMemory::open(const std::string& path, size_t bytes) {
  detail::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) {
    throw IoError("cannot open the memory that rank 0 shares, " + path, errno);
  }
  return {std::move(file), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(other.bytes_),
      data_(std::exchange(other.data_, nullptr)) {}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) {
    ::munmap(data_, bytes_);
  }
}

std::string SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get());
}

}  // namespace rondo
