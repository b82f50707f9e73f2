#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

/// What tells whether a file is still the one that was read.
struct FileIdentity {
  std::filesystem::path path;
  int64_t inode = 0;
  int64_t size = 0;
  int64_t modified = 0;  ///< nanoseconds since 1970
};

/// Texts by file, in a database of whoever reads. A cache: whatever fails, it just knows nothing,
/// and a database that is damaged is made anew. Without SQLite it knows nothing at all.
class SummaryIndex {
 public:
  /// \param file  of the database, made with its folder when it is missing; empty: none
  explicit SummaryIndex(const std::filesystem::path& file);
  SummaryIndex(const SummaryIndex&) = delete;
  SummaryIndex& operator=(const SummaryIndex&) = delete;
  /// Writes what was added.
  ~SummaryIndex();

  /// The text of exactly this file.
  std::optional<std::string> find(const FileIdentity& file);

  /// Takes the place of an earlier text of this path.
  void add(const FileIdentity& file, const std::string& text);

 private:
  struct Database;
  std::unique_ptr<Database> database_;  // null: none, or it failed
};

}  // namespace rondo
