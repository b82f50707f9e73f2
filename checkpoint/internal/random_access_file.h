#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/file_descriptor.h"

namespace rondo::detail {

/// A regular file that is read by position. The file that was opened stays the one read, also after
/// another one was renamed over it. Of a file that gzip or zstd wrote one reads what it unpacks to,
/// from a file without a name that needs as much room on disk.
class RandomAccessFile {
 public:
  /// \throws IoError  also for what is not a regular file
  /// \throws CheckpointError  for a compressed file that is damaged
  explicit RandomAccessFile(const std::filesystem::path& path);

  const std::string& path() const { return path_; }

  uint64_t size() const { return size_; }

  /// Fills `to` with `size` bytes from `offset` on. \throws IoError  also when the file ends before
  void read(uint64_t offset, void* to, size_t size) const;

  std::string read(uint64_t offset, size_t size) const;

  /// The bytes from `offset` on as pages of the file, which outlive this object; null where it
  /// cannot be mapped. Writing to them changes nothing in the file. Until they are let go nobody
  /// may write into the file (to replace it is harmless): whoever cuts it short kills, by SIGBUS,
  /// the process that then looks at the pages.
  std::shared_ptr<void> map(uint64_t offset, size_t size) const;

 private:
  std::string path_;
  FileDescriptor fd_;
  uint64_t size_ = 0;
};

}  // namespace rondo::detail
