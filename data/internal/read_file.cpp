#include "data/internal/read_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <memory>

#include "core/error.h"

namespace rondo::detail {

namespace {

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

constexpr unsigned kBlock = 1 << 18;  // bytes; zlib's manual asks for more than its 8 KiB default

/// Throws when the last read failed, or reached the end of the file inside a gzip stream.
void check(gzFile_s* file, const std::filesystem::path& path, size_t offset) {
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  if (code == Z_ERRNO) {
    throw IoError("cannot read " + path.string(), errno);
  }
  if (code == Z_BUF_ERROR) {
    throw DataError(fmt::format(
        "{}: the gzip stream ends early, at offset {} of its content", path.string(), offset));
  }
  if (code != Z_OK) {
    throw DataError(fmt::format("{}: the gzip stream is damaged after offset {} of its content: {}",
                                path.string(),
                                offset,
                                message));
  }
}

}  // namespace

std::string read_data_file(const std::filesystem::path& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (!file) {
    throw IoError("cannot open " + path.string(), errno);
  }
  gzbuffer(file.get(), kBlock);
  std::string bytes;
  while (true) {
    const size_t size = bytes.size();
    bytes.resize(size + kBlock);
    const int got = gzread(file.get(), bytes.data() + size, kBlock);
    bytes.resize(size + static_cast<size_t>(got > 0 ? got : 0));
    if (got < static_cast<int>(kBlock)) {
      check(file.get(), path, bytes.size());
    }
    if (got <= 0) {
      return bytes;
    }
  }
}

}  // namespace rondo::detail
