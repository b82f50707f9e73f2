#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/results.h"
#include "remote/remote_store.h"

namespace rondo {

/// What `validate_all` found, kept beside a run as it comes: `validate_all.jsonl`, one row a line,
/// and `validate_all.csv`. A row is known again while the checkpoint's file or object, the loaders
/// and the resolved config are those that it was found with. A line that is cut short or malformed
/// is passed over. All throw IoError.
class ValidationResults {
 public:
  /// \param config  the resolved config; "" knows nothing again: code may have changed
  ValidationResults(std::filesystem::path directory,
                    const std::vector<std::string>& loaders,
                    const std::string& config,
                    OpenRemoteStore open = open_remote_store);

  /// The row of this checkpoint, when it is known.
  std::optional<ValidationRow> find(const std::filesystem::path& checkpoint) const;

  /// Adds a row to both files.
  /// \param key  what the checkpoint had as `key_of` before it was read
  void add(const ValidationRow& row, const std::string& key);

  /// What a row of the checkpoint as it is now would be known by; "" when there is none, or no way
  /// to tell it from an earlier one.
  std::string key_of(const std::filesystem::path& checkpoint) const;

 private:
  struct Entry {
    std::string key;  // what the row was found with
    ValidationRow row;
  };

  void read();
  std::filesystem::path csv() const;
  void append_to_csv(const ValidationRow& row) const;
  void write_csv();  // anew, when the file does not hold the rows

  std::filesystem::path directory_;
  std::string loaders_;
  std::string config_;
  OpenRemoteStore open_;
  std::map<std::string, Entry> entries_;  // by checkpoint
  std::vector<std::string> columns_;      // of every row in the CSV file; empty: they differ
};

}  // namespace rondo
