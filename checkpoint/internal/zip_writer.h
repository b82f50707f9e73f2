#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.h"

namespace rondo::detail {

/// Writes a zip archive front to back, straight from the callers' memory: stored records in one
/// root folder, each beginning at a multiple of 64 bytes, and a seal over the whole file.
class ZipWriter {
 public:
  /// \param zip64_from  from this size or offset on, zip64 fields are used; below 4 GiB in tests
  /// only
  explicit ZipWriter(WritableFile& file, uint32_t zip64_from = 0xFFFFFFFF);

  /// \param name  below the root folder; another one for each record
  /// \throws IoError
  void add(std::string_view name, const void* bytes, size_t size);

  void add(std::string_view name, std::string_view bytes) { add(name, bytes.data(), bytes.size()); }

  /// Writes the directory and the seal. \throws IoError
  void finish();

 private:
  struct Record {
    std::string name;
    uint32_t crc = 0;
    uint64_t size = 0;
    uint64_t offset = 0;  ///< of its local header
  };

  std::string local_header(const Record& record) const;
  std::string central_header(const Record& record) const;
  std::string end_of_directory(uint64_t directory, uint64_t directory_size) const;
  void append(std::string_view bytes);

  bool is_large(uint64_t value) const { return value >= zip64_from_; }

  uint32_t narrow(uint64_t value) const;

  WritableFile& file_;
  uint32_t zip64_from_;
  std::vector<Record> records_;
  uint64_t position_ = 0;
  uint32_t crc_ = 0;  ///< of everything written so far
};

}  // namespace rondo::detail
