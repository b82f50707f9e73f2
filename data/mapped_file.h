#pragma once

#include <cstddef>
#include <filesystem>

namespace rondo {

/// A file as memory that is read from disk when it is touched. The file must not shrink meanwhile.
class MappedFile {
 public:
  /// \throws IoError  when it cannot be opened or mapped
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Begins at a page, so it is aligned for every type; null for an empty file.
  const void* data() const { return data_; }

  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rondo
