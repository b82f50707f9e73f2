#include "checkpoint/internal/random_access_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"

namespace rondo::detail {

namespace {

uint64_t size_of_regular(int fd, const std::string& path) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    throw IoError(fmt::format("cannot examine {}", path), errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw IoError(fmt::format("{} is not a file", path), 0);
  }
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path) : path_(path.string()) {
  do {  // O_NONBLOCK: opening a pipe would wait for its writer
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) {
    throw IoError(fmt::format("cannot open {}", path_), errno);
  }
  try {
    size_ = size_of_regular(fd_, path_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

RandomAccessFile::~RandomAccessFile() {
  ::close(fd_);
}

void RandomAccessFile::read(uint64_t offset, void* to, size_t size) const {
  char* next = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd_, next, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw IoError(fmt::format("cannot read {} at byte {}", path_, offset), errno);
    }
    if (got == 0) {
      throw IoError(fmt::format("{} ends at byte {}", path_, offset), 0);
    }
    next += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
}

std::string RandomAccessFile::read(uint64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  read(offset, bytes.data(), size);
  return bytes;
}

}  // namespace rondo::detail
