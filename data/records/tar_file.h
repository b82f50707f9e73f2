#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/file_descriptor.h"

namespace rondo {

/// A file in a tar archive.
struct TarMember {
  std::string name = {};
  int64_t offset = 0;  ///< of its bytes in the archive
  int64_t size = 0;    ///< of them
  int64_t next = 0;    ///< where the header behind them begins
};

/// A tar archive on disk, of the formats v7, ustar, pax and GNU. Every size in a header is checked
/// against the archive before anything is read. One thread at a time.
/// Source: POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar manual, "Basic Tar Format"
class TarFile {
 public:
  /// \throws IoError    when it cannot be opened
  /// \throws DataError  for a compressed archive
  explicit TarFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  /// The first regular file whose header is at `offset` or behind it; nothing at the end.
  /// \throws DataError  naming archive and offset: a header that is damaged, a file that is cut off
  std::optional<TarMember> member_at(int64_t offset) const;

  /// The bytes of a member of this archive.
  std::string content(const TarMember& member) const;

 private:
  std::string read(int64_t offset, int64_t size) const;
  [[noreturn]] void fail(int64_t offset, const std::string& what) const;

  std::filesystem::path path_;
  detail::FileDescriptor file_;
  int64_t size_ = 0;
};

}  // namespace rondo
