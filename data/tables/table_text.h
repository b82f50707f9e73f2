#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/mapped_file.h"

namespace rondo {

/// The bytes of a text file: mapped, or unpacked when they are compressed by gzip or zstd. What is
/// no text (spreadsheets, Parquet, UTF-16) is refused with what to do.
class TableText {
 public:
  /// \param most_unpacked  bytes that a compressed file may become
  /// \throws IoError    when the file cannot be read
  /// \throws DataError  when it is damaged, grows beyond the limit or is no text; names the file
  TableText(const std::filesystem::path& path, uint64_t most_unpacked);

  /// Without a byte order mark. Lives as long as the object.
  std::string_view bytes() const;

 private:
  std::unique_ptr<MappedFile> mapped_;
  std::string unpacked_;
  bool is_unpacked_ = false;
};

}  // namespace rondo
