#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/internal/random_access_file.h"

namespace rondo::detail {

/// A record of a zip archive.
struct ZipRecord {
  std::string name;            ///< with the root folder
  uint64_t header = 0;         ///< where its local header begins
  uint64_t data = 0;           ///< where its bytes begin
  uint64_t size = 0;           ///< of its bytes in the file
  uint32_t crc = 0;            ///< of what they unpack to
  bool is_compressed = false;  ///< as the code in a file of TorchScript is; it is not read
};

struct ZipDirectory {
  std::vector<ZipRecord> records;  ///< in the order of the file; no two share a byte
  std::string comment;
};

/// Reads the central directory and each record's local header, and checks them against each other
/// and the file's size. Memory stays below a small multiple of the directory's size.
/// \throws CheckpointError  naming path and offset, when the file is not such an archive
/// \throws IoError
ZipDirectory read_zip_directory(const RandomAccessFile& file);

}  // namespace rondo::detail
