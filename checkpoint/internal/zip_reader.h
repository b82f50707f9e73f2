#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/random_access_file.h"
#include "checkpoint/internal/zip_directory.h"

namespace rondo::detail {

/// Reads the stored records of a torch archive, each against its checksum. Compressed ones are
/// passed over.
/// All throw CheckpointError naming path, record and offset of what is wrong, or IoError.
class ZipReader {
 public:
  explicit ZipReader(const std::filesystem::path& path);

  /// The record below the archive's root folder, or null.
  const ZipRecord* find(std::string_view name) const;
  const ZipRecord& at(std::string_view name) const;

  /// Reads a record's bytes into `to`, which has room for `record.size`.
  void read(const ZipRecord& record, void* to);
  /// The record's bytes as pages of the file (RandomAccessFile::map), or null. They are checked by
  /// reading, so that a file that is cut short meanwhile is an error and no signal.
  std::shared_ptr<void> map(const ZipRecord& record);
  /// \throws CheckpointError  also when the record is larger than `limit`
  std::string read_text(const ZipRecord& record, uint64_t limit);

  /// True when the file ends with a seal.
  bool is_sealed() const;

  /// Checks the stored records that were not read, and the seal where there is one: afterwards no
  /// byte of a sealed file is left unchecked.
  void verify_rest();

  FilePlace place(const ZipRecord& record) const;

 private:
  size_t index_of(const ZipRecord& record) const;
  uint32_t checksum_between(uint64_t begin, uint64_t end, uint32_t before) const;
  void require_stored(const ZipRecord& record) const;
  void expect_checksum(const ZipRecord& record, uint32_t found) const;
  void verify_seal() const;

  RandomAccessFile file_;
  ZipDirectory directory_;
  std::string root_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<bool> is_verified_;
};

}  // namespace rondo::detail
