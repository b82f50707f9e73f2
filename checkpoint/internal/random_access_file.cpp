#include "checkpoint/internal/random_access_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "checkpoint/internal/compression.h"
#include "checkpoint/internal/unpacked_file.h"
#include "core/error.h"

namespace rondo::detail {

namespace {

constexpr uint64_t kMagicSize = 4;  // of what tells a compressed file

int open_to_read(const std::string& path) {
  int fd = -1;
  do {  // O_NONBLOCK: opening a pipe would wait for its writer
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    throw IoError(fmt::format("cannot open {}", path), errno);
  }
  return fd;
}

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

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path)
    : path_(path.string()), fd_(open_to_read(path_)), size_(size_of_regular(fd_.get(), path_)) {
  const Compression compression =
      compression_of_content(read(0, std::min<uint64_t>(size_, kMagicSize)));
  if (compression != Compression::None) {
    fd_ = unpack(*this, compression);
    size_ = size_of_regular(fd_.get(), path_);
  }
}

void RandomAccessFile::read(uint64_t offset, void* to, size_t size) const {
  char* next = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd_.get(), next, size, static_cast<off_t>(offset));
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

std::shared_ptr<void> RandomAccessFile::map(uint64_t offset, size_t size) const {
  const uint64_t before = offset % static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* pages = ::mmap(nullptr,
                       before + size,
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE,
                       fd_.get(),
                       static_cast<off_t>(offset - before));
  if (pages == MAP_FAILED) {
    return nullptr;
  }
  return {static_cast<char*>(pages) + before,
          [pages, before, size](void*) { ::munmap(pages, before + size); }};
}

std::string RandomAccessFile::read(uint64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  read(offset, bytes.data(), size);
  return bytes;
}

}  // namespace rondo::detail
