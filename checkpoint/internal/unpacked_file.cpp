#include "checkpoint/internal/unpacked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/random_access_file.h"
#include "core/error.h"

namespace rondo::detail {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kUnpackedBlock = uint64_t{1} << 20;

uint64_t largest_unpacked(uint64_t packed) {
  constexpr uint64_t kRatio = 1000;
  constexpr uint64_t kAlways = uint64_t{64} << 20;
  return packed * kRatio + kAlways;
}

/// A new file without a name; below 0 and `errno` when there can be none.
int open_unnamed(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
    return fd;
  }
  std::string name = (directory / "rondo.XXXXXX").string();  // a file system without such files
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) {
    ::unlink(name.c_str());
  }
  return named;
}

FileDescriptor make_unnamed(const fs::path& packed) {
  const fs::path beside = packed.has_parent_path() ? packed.parent_path() : ".";
  for (const fs::path& directory : {beside, fs::path("/var/tmp")}) {
    FileDescriptor file(open_unnamed(directory));
    if (file.get() >= 0) {
      return file;
    }
  }
  throw IoError(fmt::format("cannot create a file to unpack {} into", packed.string()), errno);
}

void write_all(int fd, const void* bytes, size_t size, const std::string& packed) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd, next, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      throw IoError(fmt::format("cannot write what {} unpacks to", packed), errno);
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
}

}  // namespace

FileDescriptor unpack(const RandomAccessFile& packed, Compression compression) {
  FileDescriptor file = make_unnamed(packed.path());
  const uint64_t limit = largest_unpacked(packed.size());
  uint64_t unpacked = 0;
  const Coder::Sink write = [&](const void* bytes, size_t size) {
    unpacked += size;
    if (unpacked > limit) {
      throw Malformed(
          fmt::format("it unpacks to more than {} bytes, too much for a checkpoint; if it is one, "
                      "unpack it yourself",
                      limit));
    }
    write_all(file.get(), bytes, size, packed.path());
  };
  const std::unique_ptr<Coder> decoder = make_decoder(compression);
  uint64_t position = 0;
  try {
    while (position < packed.size()) {
      const std::string block =
          packed.read(position, std::min(kUnpackedBlock, packed.size() - position));
      decoder->put(block.data(), block.size(), write);
      position += block.size();
    }
    decoder->finish(write);
  } catch (const Malformed& error) {
    fail_at({packed.path(), "", position}, error.what());
  }
  return file;
}

}  // namespace rondo::detail
