#pragma once

#include <filesystem>
#include <vector>

#include "core/file_system.h"

namespace rondo {

/// Removes what saves that died left in a directory: the files `*.{8 hex}.tmp` that nobody is
/// writing (a writer holds the file's lock, see FileSystem::create). Subdirectories are not
/// entered. On a file system without locks nothing is removed. \return the paths of the files
/// removed \throws IoError
std::vector<std::filesystem::path> remove_stale_temporaries(FileSystem& files,
                                                            const std::filesystem::path& directory);

}  // namespace rondo
