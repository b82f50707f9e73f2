#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/mapped_file.h"
#include "data/tables/text_rows.h"

namespace rondo {

/// The bytes of a text file: mapped, or unpacked when they are compressed by gzip or zstd. Lines of
/// JSON and what a query of a database gives become rows. What is
/// no text (spreadsheets, Parquet, UTF-16) is refused with what to do.
class TableText {
 public:
  /// \param most_unpacked  bytes that a compressed file may become
  /// \throws IoError    when the file cannot be read
  /// \throws DataError  when it is damaged, grows beyond the limit or is no text; names the file
  /// \param query          for an SQLite database; "" for text
  TableText(const std::filesystem::path& path,
            uint64_t most_unpacked,
            const std::string& query = "");

  /// Without a byte order mark. Lives as long as the object.
  std::string_view bytes() const;

  /// The names of the columns of a file of JSON or a database, whose rows `bytes` has without a
  /// line of names; else empty.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void take(TextRows rows);

  std::unique_ptr<MappedFile> mapped_;
  std::string unpacked_;
  bool is_unpacked_ = false;
  std::vector<std::string> names_;
};

}  // namespace rondo
