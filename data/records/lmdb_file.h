#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "data/mapped_file.h"

namespace rondo {

/// The data file of an LMDB database, format 1, read without its library: nobody can vouch for a
/// file, and the library trusts every number in it. The file stays on disk, mapped; nobody may
/// write it meanwhile.
/// Source: LMDB 0.9.24, mdb.c, "Internal" structures
class LmdbFile {
 public:
  /// \throws IoError    when it cannot be opened
  /// \throws DataError  for another format, naming the file
  explicit LmdbFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

  /// Visits the entries of the main database in the order of their keys. Key and value are in the
  /// mapped file.
  /// \throws DataError  naming file and page of what is damaged, for a page that is reached twice,
  ///                    and for a database of databases or of several values a key
  void visit(const std::function<void(std::string_view key, std::string_view value)>& take) const;

 private:
  class Walk;

  /// What one of the two pages says that begin the file.
  struct Meta {
    uint64_t page_size = 0;
    uint64_t root = 0;
    uint64_t transaction = 0;
    bool has_duplicates = false;
  };

  bool read_meta(uint64_t offset, Meta& meta) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path path_;
  MappedFile file_;
  Meta meta_;
};

}  // namespace rondo
