#pragma once

#include <filesystem>
#include <optional>

namespace rondo::detail {

/// An exclusive lock on a file (flock) among all processes and threads, held while the object
/// lives; a process that dies gives it back. File systems without locks grant it to everybody.
class FileLock {
 public:
  /// Waits for the lock. Makes the file when there is none; it stays.
  /// \throws IoError
  explicit FileLock(const std::filesystem::path& path);

  /// The lock, when the file is there, is no link, and nobody holds it. Without locks, none.
  static std::optional<FileLock> try_existing(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace rondo::detail
