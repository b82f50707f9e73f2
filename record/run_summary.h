#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "record/run_record.h"
#include "record/summary_index.h"

namespace rondo {

/// `$XDG_CACHE_HOME/rondo/runs.db`, or else `~/.cache/rondo/runs.db`; empty where neither is known.
std::filesystem::path default_index_file();

/// Reads of many runs what a table of them shows, from an index where the record is as it was.
/// Never writes into the run's directory.
class RunSummaries {
 public:
  explicit RunSummaries(const std::filesystem::path& index = default_index_file())
      : index_(index) {}

  /// As `read_record`, but each metric has at most its best and its newest value, and there are no
  /// positions, saves, validations, media, and no text of the config.
  /// \throws DataError  as `read_record`
  RunRecord read(const std::filesystem::path& directory);

 private:
  SummaryIndex index_;
};

/// One line of JSON, for the index.
std::string to_summary(const RunRecord& run);

/// \throws DataError  when it is none
RunRecord from_summary(std::string_view text);

}  // namespace rondo
