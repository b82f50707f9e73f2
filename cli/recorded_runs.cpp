#include "cli/recorded_runs.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "core/error.h"
#include "core/terminal.h"
#include "record/run_summary.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// \param read  gives the record of a directory
template <class Read>
std::vector<RunRecord> read_all(const std::vector<fs::path>& directories, const Read& read) {
  std::vector<RunRecord> runs;
  for (const fs::path& directory : directories) {
    try {
      runs.push_back(read(directory));
      warn_of(runs.back());
    } catch (const DataError& error) {
      std::cerr << error.what() << "\n";  // the others are shown
    }
  }
  return runs;
}

/// \param read  gives the records of directories
template <class Read>
std::vector<RunRecord> all_at(const std::vector<std::string>& paths, const Read& read) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) {
    const std::vector<fs::path> found = find_runs(path);
    if (found.empty()) {
      throw UsageError(
          fmt::format("{}: there is no run here or below; a fit writes {} into its model_dir",
                      path,
                      kRecordFile));
    }
    for (RunRecord& run : read(found)) {
      if (found.size() > 1) {
        run.name = name_below(run.directory, path);
      }
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace

void warn_of(const RunRecord& run) {
  const std::string file = (run.directory / kRecordFile).string();
  if (run.damaged_lines > 0) {
    std::cerr << fmt::format("{}: skipping {} damaged lines; the first is line {}\n",
                             file,
                             run.damaged_lines,
                             run.damaged_line);
  }
  if (run.format > kRecordFormat) {
    std::cerr << fmt::format(
        "{}: written in format {} by rondo {}, and this rondo reads format {}: what is shown can "
        "be wrong\n",
        file,
        run.format,
        printable(run.version),
        kRecordFormat);
  }
}

std::vector<RunRecord> read_runs(const std::vector<fs::path>& directories) {
  return read_all(directories, [](const fs::path& directory) { return read_record(directory); });
}

std::vector<RunRecord> read_summaries(const std::vector<fs::path>& directories) {
  RunSummaries summaries;
  return read_all(directories,
                  [&](const fs::path& directory) { return summaries.read(directory); });
}

std::string name_below(const fs::path& directory, const fs::path& root) {
  const fs::path below = fs::absolute(directory).lexically_normal().lexically_relative(
      fs::absolute(root).lexically_normal());
  return below == "." || below.empty() ? directory.filename().string() : below.string();
}

std::vector<RunRecord> runs_at(const std::vector<std::string>& paths) {
  return all_at(paths, &read_runs);
}

std::vector<RunRecord> summaries_at(const std::vector<std::string>& paths) {
  return all_at(paths, &read_summaries);
}

}  // namespace rondo
