#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// A file that a data set needs.
struct DataFile {
  std::string what;                ///< for messages: "MNIST images"
  std::vector<std::string> names;  ///< any of them will do; the first that exists is taken
  std::string folder;              ///< of the data directory, looked into as well; may be empty
  std::string source;              ///< for messages: where to get the file; may be empty
};

/// The directory that the environment variable RONDO_DATA names; empty when it is not set.
std::filesystem::path default_data_dir();

/// The path of a data file, in the directory `data_dir`, or in that of the environment variable
/// RONDO_DATA when there is none; or in the file's `folder` inside it. An absolute name needs no
/// directory.
/// \throws DataError  says what was looked for, in which places, and how to get it
std::filesystem::path find_data_file(const std::optional<std::filesystem::path>& data_dir,
                                     const DataFile& file);

/// The same for a name that can be a glob in its last part: the paths of all files that match, in
/// the order of their names, from the first directory that has any.
std::vector<std::filesystem::path> find_data_files(
    const std::optional<std::filesystem::path>& data_dir, const DataFile& file);

}  // namespace rondo
