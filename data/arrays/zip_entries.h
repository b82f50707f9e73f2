#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

/// A file inside a zip archive.
struct ZipEntry {
  std::string name;
  size_t data = 0;    ///< offset of its bytes in the archive
  size_t packed = 0;  ///< bytes there
  size_t size = 0;    ///< bytes that they unpack to
  uint32_t crc = 0;   ///< of the latter
  bool is_deflated = false;
};

/// Reads the directory of an archive, and checks every entry against the archive's size.
/// \param path   for messages
/// \param bytes  of the whole archive
/// \throws DataError  naming file and offset
std::vector<ZipEntry> read_zip_entries(const std::filesystem::path& path, std::string_view bytes);

/// The content of an entry. \throws DataError  when it is damaged
std::string unpack_zip_entry(const std::filesystem::path& path,
                             std::string_view bytes,
                             const ZipEntry& entry);

}  // namespace rondo::detail
