#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace rondo {

/// Tells on standard error what a table or chart of a record does not: damaged lines, and that a
/// later rondo wrote it.
void warn_of(const RunRecord& run);

/// The records of these directories. One that cannot be read is told on standard error and left
/// out; `warn_of` is called for the others.
std::vector<RunRecord> read_runs(const std::vector<std::filesystem::path>& directories);

/// The same from the index of summaries: see `RunSummaries`.
std::vector<RunRecord> read_summaries(const std::vector<std::filesystem::path>& directories);

/// The runs at or below each path. A run is named by its directory.
/// \throws UsageError  when there is none at a path
std::vector<RunRecord> runs_at(const std::vector<std::string>& paths);

/// The same from the index of summaries.
std::vector<RunRecord> summaries_at(const std::vector<std::string>& paths);

/// A directory's path from `root`, or its name where they are the same.
std::string name_below(const std::filesystem::path& directory, const std::filesystem::path& root);

}  // namespace rondo
