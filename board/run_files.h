#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// A file of a run's directory.
/// \param path  from the directory, as a record or a browser names it
/// \return where it is; nothing when there is none, or it is no file inside of the directory, also
///         by a link
std::optional<std::filesystem::path> file_of_run(const std::filesystem::path& directory,
                                                 const std::string& path);

/// The bytes of a file. \throws DataError  when it cannot be read, or has more than 64 MiB
std::string bytes_of_file(const std::filesystem::path& file);

/// The newest folder of `logs/` that has `steps/`; relative to the run's directory, "" for none.
std::string newest_steps_folder(const std::filesystem::path& directory);

/// Names without their ending of the traced steps that a run described; not their traces.
std::vector<std::string> steps_of_run(const std::filesystem::path& directory);

/// A file of a traced step; nothing when there is none.
/// \param part  "program": the text of its program and plan; "timeline": the trace of its
/// operators,
///              that of `OpProfiler` or else of `rondo inspect --timeline`; "": its numbers
std::optional<std::filesystem::path> file_of_step(const std::filesystem::path& directory,
                                                  const std::string& key,
                                                  const std::string& part);

/// Paths of the tables of `validate_all` from the run's directory, the newest first.
std::vector<std::string> tables_of_run(const std::filesystem::path& directory);

/// Lines of a text file.
struct FoundLines {
  std::vector<std::string> last;
  int64_t count = 0;  ///< of all lines that hold the text
};

/// The last lines that hold a text, whatever its case, at most `most` of them.
FoundLines lines_with(const std::filesystem::path& file, const std::string& text, size_t most);

}  // namespace rondo
